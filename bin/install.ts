import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The folder after `--install`, `~/.local/bin` where none is given; undefined without the flag. Throws for anything else. */
export function installFolder(args: readonly string[], home: string): string | undefined {
  const [flag, folder, ...more] = args
  if (flag === undefined) return undefined
  if (flag !== '--install' || more.length > 0 || folder?.startsWith('-'))
    throw new Error(`'${args.join(' ')}' is unknown here. Write: npm run pack -- --install [folder]`)
  return folder === undefined ? join(home, '.local/bin') : resolve(folder)
}

/**
 * Copies the executable to `infer` in a folder, which is made where it is missing, and returns what to tell the user.
 * Renamed into place, because a program that runs cannot be written to.
 */
export function install(executable: string, folder: string, path: string): string {
  const target = join(folder, 'infer')
  mkdirSync(folder, { recursive: true })
  writeInPieces(target, readFileSync(executable))
  const hint = path.split(':').includes(folder)
    ? `Start it with: infer serve`
    : `${folder} is not on your PATH. Add it with: export PATH="${folder}:$PATH"`
  return `Installed ${target}. ${hint}`
}

/**
 * Writes an executable. A file lies in the page cache in pieces as large as it was written, and Linux maps a piece whole
 * when a byte of it is touched: written at once, the executable has 20 MB more resident.
 */
export function writeInPieces(path: string, content: Buffer): void {
  const pieceBytes = 64 << 10
  const whole = `${path}.${process.pid}.whole`
  const file = openSync(whole, 'w')
  for (let at = 0; at < content.length; ) at += writeSync(file, content, at, Math.min(pieceBytes, content.length - at))
  closeSync(file)
  chmodSync(whole, 0o755)
  renameSync(whole, path)
}
