import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import {
  buildIdPlace,
  bundleAudioDecoders,
  bundleLlama,
  bundleProgram,
  bundleSharp,
  filesBelow,
  root,
  workerFiles,
} from './bundle.ts'
import { buildConsole, typeOfFile } from './console/build-console.ts'
import { documentationAssets, imageAssets } from './guides/assets.ts'
import { beginStep } from './stamp.ts'
import { buildTarget } from './target.ts'
import { writeTinyModels } from './tiny-models.ts'
import { licenses, worksOf } from './works.ts'

/**
 * Builds dist/: the bundles, the assets, and the packages that stay real files. Prints one line. With `--arch arm64` the
 * same for that architecture, in build/arm64/dist.
 */
const started = performance.now()
const { values: options } = parseArgs({ options: { arch: { type: 'string' } } })
const target = buildTarget(options.arch)
const { architecture, dist } = target
const end = architecture === 'x64' ? beginStep('dist') : undefined
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const kept = new Set<string>()
/** Packages of which files are carried as they are. */
const copied = [
  '@scalar/api-reference',
  'better-sqlite3',
  'node-llama-cpp',
  `@node-llama-cpp/linux-${architecture}`,
  `@img/sharp-linux-${architecture}`,
  'dejavu-fonts-ttf',
  'wasm-media-encoders',
]

const [program, llama, sharp, decoders, webConsole] = await Promise.all([
  bundleProgram(version),
  bundleLlama(),
  bundleSharp(architecture),
  bundleAudioDecoders(),
  buildConsole(join(dist, 'assets/console')),
])

copy('@scalar/api-reference', 'dist/browser/standalone.js', 'assets/docs/scalar.js')
for (const name of ['grafana.json', 'alerts.yaml', 'answer-examples.json'])
  put(`assets/docs/${name}`, readFileSync(join(root, 'server/docs', name), 'utf8'))
copy('better-sqlite3', `prebuilds/linux-${architecture}.node`, 'assets/native/better_sqlite3.node')
copy('dejavu-fonts-ttf', 'ttf/DejaVuSans.ttf', 'assets/fonts/DejaVuSans.ttf')
copy('wasm-media-encoders', 'wasm/mp3.wasm', 'assets/audio/mp3.wasm')
const works = worksOf({
  inputs: [...program, ...llama, ...sharp, ...decoders, ...webConsole.files].flatMap(({ inputs }) => inputs),
  copied,
  target,
})
put('assets/licenses.txt', licenses(works))
for (const { path, text } of documentationAssets()) put(`assets/${path}`, text)
for (const { path, bytes } of imageAssets()) put(`assets/${path}`, bytes)
for (const path of writeTinyModels(join(dist, 'assets/models'))) kept.add(path.slice(dist.length + 1))

put('assets/worker.json', JSON.stringify(workerFiles()))
for (const name of ['slurm/wrapper', 'slurm/nodes', 'kubernetes/wrapper'])
  put(`assets/${name.replace('/', '-')}.py`, readFileSync(join(root, `gpu/launcher/${name}.py`), 'utf8'))

for (const { path, text } of decoders) put(`assets/${path}`, text)
for (const { path, content } of webConsole.files) {
  if (content instanceof Uint8Array) {
    put(`assets/console/${path}`, content)
    continue
  }
  put(`assets/console/${path}.br`, content.br)
  put(`assets/console/${path}.gz`, content.gzip)
}
const consoleFiles = Object.fromEntries(webConsole.files.map(({ path }) => [path, typeOfFile(path)]))
put(
  'assets/console/manifest.json',
  JSON.stringify({
    page: webConsole.page,
    linkPage: webConsole.linkPage,
    preloads: webConsole.preloads,
    files: consoleFiles,
  }),
)

for (const { path, text } of llama) put(`vendor/${path}`, text)
const runs = /^(package\.json|llama\/[^/]+\.json|llama\/grammars\/.+\.gbnf)$/
copyAll('node-llama-cpp', 'vendor', path => runs.test(path))
copyAll(`@node-llama-cpp/linux-${architecture}`, 'vendor', path => !/\.md$|^LICENSE$|\.d\.ts$/.test(path))

for (const { path, text } of sharp) put(`vendor-sharp/${path}`, text)
copy('sharp', 'package.json', 'vendor-sharp/node_modules/sharp/package.json')
for (const name of [`@img/sharp-linux-${architecture}`, `@img/sharp-libvips-linux-${architecture}`])
  copyAll(name, 'vendor-sharp', path => !/\.md$|\.h$|^LICENSE$/.test(path))

// What is extracted is kept under this id, so it must name every byte that can be extracted and that extracts.
const sum = createHash('sha256')
const contents = new Map<string, string | Buffer>(program.map(({ path, text }) => [path, text]))
for (const path of kept) contents.set(path, readFileSync(join(dist, path)))
for (const path of [...contents.keys()].sort())
  sum.update(`${path}\0${contents.get(path)!.length}\0`).update(contents.get(path)!)
const id = sum.digest('hex').slice(0, 16)
for (const { path, text } of program) put(path, text.replaceAll(buildIdPlace, id))
// For bin/sbom.ts; the executable has it as assets/licenses.txt.
put('works.json', JSON.stringify(works.map(({ text: _text, ...work }) => work)))

for (const path of filesBelow(dist)) if (!kept.has(path)) rmSync(join(dist, path))
end?.()
process.stdout.write(
  `${relative(root, dist)}: infer ${version}, build ${id}, ${kept.size} files in ${Math.round(performance.now() - started)} ms\n`,
)

/** Copies a file of a package unless the copy has its size and time. */
function copy(name: string, from: string, to: string): void {
  kept.add(to)
  const [source, copied] = [join(target.packageFolder(name), from), join(dist, to)]
  const [now, before] = [statSync(source), statSync(copied, { throwIfNoEntry: false })]
  if (before?.size === now.size && before.mtimeMs === now.mtimeMs) return
  cpSync(source, copied, { preserveTimestamps: true })
}

/** Copies the files of a package that are wanted to the node_modules of a folder. */
function copyAll(name: string, folder: string, wanted: (path: string) => boolean): void {
  for (const path of filesBelow(target.packageFolder(name)).filter(wanted))
    copy(name, path, `${folder}/node_modules/${name}/${path}`)
}

/** In one rename, because a program started from dist/ may be reading it. */
function put(path: string, content: string | Uint8Array): void {
  kept.add(path)
  const written = join(dist, path)
  if (existsSync(written) && readFileSync(written).equals(Buffer.from(content as Uint8Array))) return
  mkdirSync(dirname(written), { recursive: true })
  writeFileSync(`${written}.${process.pid}`, content)
  renameSync(`${written}.${process.pid}`, written)
}
