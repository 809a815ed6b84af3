import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  buildIdPlace,
  bundleAudioDecoders,
  bundleLlama,
  bundleProgram,
  bundleSharp,
  filesBelow,
  root,
} from './bundle.ts'
import { documentationAssets } from './guides/assets.ts'
import { licenses } from './licenses.ts'
import { writeTinyModels } from './tiny-models.ts'

/** Builds dist/: the bundles, the assets, and the packages that stay real files. Prints one line. */
const started = performance.now()
const dist = join(root, 'dist')
const packages = join(root, 'node_modules')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const kept = new Set<string>()
/** Packages of which files are carried as they are. */
const copied = [
  '@scalar/api-reference',
  'better-sqlite3',
  'node-llama-cpp',
  '@node-llama-cpp/linux-x64',
  '@img/sharp-linux-x64',
  'dejavu-fonts-ttf',
  'wasm-media-encoders',
]

const [program, llama, sharp, decoders] = await Promise.all([
  bundleProgram(version),
  bundleLlama(),
  bundleSharp(),
  bundleAudioDecoders(),
])

copy('@scalar/api-reference/dist/browser/standalone.js', 'assets/docs/scalar.js')
for (const name of ['grafana.json', 'alerts.yaml', 'answer-examples.json'])
  put(`assets/docs/${name}`, readFileSync(join(root, 'server/docs', name), 'utf8'))
copy('better-sqlite3/prebuilds/linux-x64.node', 'assets/native/better_sqlite3.node')
copy('dejavu-fonts-ttf/ttf/DejaVuSans.ttf', 'assets/fonts/DejaVuSans.ttf')
copy('wasm-media-encoders/wasm/mp3.wasm', 'assets/audio/mp3.wasm')
put(
  'assets/licenses.txt',
  licenses(
    [...program, ...llama, ...sharp, ...decoders].flatMap(({ inputs }) => inputs),
    copied,
  ),
)
for (const { path, text } of documentationAssets()) put(`assets/${path}`, text)
for (const path of writeTinyModels(join(dist, 'assets/models'))) kept.add(path.slice(dist.length + 1))

for (const { path, text } of decoders) put(`assets/${path}`, text)
for (const { path, text } of llama) put(`vendor/${path}`, text)
const runs = /^(package\.json|llama\/[^/]+\.json|llama\/grammars\/.+\.gbnf)$/
for (const path of filesBelow(join(packages, 'node-llama-cpp')).filter(path => runs.test(path)))
  copy(`node-llama-cpp/${path}`, `vendor/node_modules/node-llama-cpp/${path}`)
for (const path of filesBelow(join(packages, '@node-llama-cpp/linux-x64')).filter(
  path => !/\.md$|^LICENSE$|\.d\.ts$/.test(path),
))
  copy(`@node-llama-cpp/linux-x64/${path}`, `vendor/node_modules/@node-llama-cpp/linux-x64/${path}`)

for (const { path, text } of sharp) put(`vendor-sharp/${path}`, text)
copy('sharp/package.json', 'vendor-sharp/node_modules/sharp/package.json')
for (const name of ['@img/sharp-linux-x64', '@img/sharp-libvips-linux-x64'])
  for (const path of filesBelow(join(packages, name)).filter(path => !/\.md$|\.h$|^LICENSE$/.test(path)))
    copy(`${name}/${path}`, `vendor-sharp/node_modules/${name}/${path}`)

// What is extracted is kept under this id, so it must name every byte that can be extracted and that extracts.
const sum = createHash('sha256')
const contents = new Map<string, string | Buffer>(program.map(({ path, text }) => [path, text]))
for (const path of kept) contents.set(path, readFileSync(join(dist, path)))
for (const path of [...contents.keys()].sort())
  sum.update(`${path}\0${contents.get(path)!.length}\0`).update(contents.get(path)!)
const id = sum.digest('hex').slice(0, 16)
for (const { path, text } of program) put(path, text.replaceAll(buildIdPlace, id))

for (const path of filesBelow(dist)) if (!kept.has(path)) rmSync(join(dist, path))
process.stdout.write(
  `dist: infer ${version}, build ${id}, ${kept.size} files in ${Math.round(performance.now() - started)} ms\n`,
)

/** A file of a package, copied unless the copy has its size and time. */
function copy(from: string, to: string): void {
  kept.add(to)
  const [source, target] = [join(packages, from), join(dist, to)]
  const [now, before] = [statSync(source), statSync(target, { throwIfNoEntry: false })]
  if (before?.size === now.size && before.mtimeMs === now.mtimeMs) return
  cpSync(source, target, { preserveTimestamps: true })
}

/** In one rename, because a program started from dist/ may be reading it. */
function put(path: string, text: string): void {
  kept.add(path)
  const target = join(dist, path)
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(`${target}.${process.pid}`, text)
  renameSync(`${target}.${process.pid}`, target)
}
