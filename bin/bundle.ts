import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { type BuildOptions, type BuildResult, build as bundle, type Plugin } from 'esbuild'
import { ascii } from './ascii.ts'

export const root = join(import.meta.dirname, '..')
const packages = realpathSync(join(root, 'node_modules'))

/** Where esbuild writes the build's id; it is known only once everything else is. */
export const buildIdPlace = '@@@@build-id@@@@'

export interface Output {
  path: string
  text: string
  /** The files of which something is in it, relative to the root. */
  inputs: string[]
}

function outputsOf({ outputFiles, metafile }: BuildResult): Output[] {
  const about = new Map(Object.entries(metafile?.outputs ?? {}).map(([path, of]) => [join(root, path), of.inputs]))
  return (outputFiles ?? []).map(({ path, text }) => ({
    path,
    text,
    inputs: Object.entries(about.get(path) ?? {}).flatMap(([input, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [input] : [],
    ),
  }))
}

const versionOf = (name: string): string =>
  (JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as { version: string }).version

/** Changes expressions of a package's file. Fails the build when one of them is not there exactly once. */
function patch(file: string, ...changes: (readonly [from: string, to: string])[]): Plugin {
  const path = join(packages, file)
  return {
    name: `patch ${file}`,
    setup(build): void {
      build.onLoad({ filter: new RegExp(`/${file.replaceAll('.', '\\.')}$`) }, () => {
        const source = readFileSync(path, 'utf8')
        const missing = changes.find(([from]) => source.split(from).length !== 2)
        if (missing) throw new Error(`${file} no longer holds exactly once: ${missing[0]}. See bin/README.md.`)
        const contents = changes.reduce((text, [from, to]) => text.replace(from, () => to), source)
        return { contents, loader: 'js', resolveDir: dirname(path) }
      })
    },
  }
}

/** Own code finds its files through core/assets.ts only: any other path is wrong in two of the three forms. */
const onlyAssetsKnowPlaces: Plugin = {
  name: 'only core/assets.ts knows where files lie',
  setup(build): void {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8')
      const own = !path.includes(`${sep}node_modules${sep}`)
      if (own && /import\.meta\b/.test(contents) && path !== join(root, 'core/assets.ts'))
        throw new Error(`${relative(root, path)} uses import.meta, which a bundle does not keep. Ask core/assets.ts.`)
      return { contents, loader: 'ts' }
    })
  },
}

/** A package's file, whole, as something smaller that has what is used of it. */
function instead(filter: RegExp, contents: string): Plugin {
  return {
    name: `instead of ${filter.source}`,
    setup(build): void {
      build.onLoad({ filter }, ({ path }) => ({ contents, loader: 'js', resolveDir: dirname(path) }))
    },
  }
}

const notInBundle = (name: string): string => `throw new Error('${name} is not in the bundle: bin/bundle.ts')`

/**
 * What is bundled lies in memory whole and is run whole, with what it loads of Node; what nobody uses of large packages
 * stays out. Together 10 MB of 140 at rest.
 */
const onlyWhatIsUsed: Plugin[] = [
  // Its clients, without a second `fetch`, a cache, mocks and WebSockets: 800 kB.
  instead(
    /\/undici\/index\.js$/,
    `import Dispatcher from './lib/dispatcher/dispatcher.js'
    import api from './lib/api/index.js'
    Object.assign(Dispatcher.prototype, api)
    export { default as Agent } from './lib/dispatcher/agent.js'
    export { default as Client } from './lib/dispatcher/client.js'`,
  ),
  // No connection of ours speaks HTTP/2 (`allowH2: false`), of which Node's own part is large.
  instead(/\/undici\/lib\/dispatcher\/client-h2\.js$/, `module.exports = () => { ${notInBundle('HTTP/2')} }`),
  // Without pushing to a gateway, which loads TLS, and without adding up a cluster's processes.
  instead(
    /\/prom-client\/index\.js$/,
    `export { default as Registry } from './lib/registry.js'
    export { default as Counter } from './lib/counter.js'
    export { default as Gauge } from './lib/gauge.js'
    export { default as Histogram } from './lib/histogram.js'
    export { default as collectDefaultMetrics } from './lib/defaultMetrics.js'`,
  ),
  // Its `Request`, `Response` and URL, with what they load of Node (`fetch` and HTTP/2): our events have none.
  instead(
    /\/srvx\/dist\/adapters\/node\.mjs$/,
    `const absent = () => { ${notInBundle('srvx')} }
    export { absent as FastResponse, absent as FastURL, absent as serve, absent as toNodeHandler }`,
  ),
  patch('h3/dist/response.mjs', [`var FrozenHeaders = class extends Headers {`, `var FrozenHeaders = class {`]),
  // Only a new self-signed certificate needs node-forge (390 kB), and no warning of listhen's is to be had with our
  // options, so that it needs no consola either.
  patch(
    'listhen/dist/shared/listhen.tqe5I1Rl.mjs',
    [
      `import forge from 'node-forge';`,
      `const forge = {
        get asn1() { return require('node-forge').asn1 },
        get md() { return require('node-forge').md },
        get pkcs12() { return require('node-forge').pkcs12 },
        get pki() { return require('node-forge').pki },
      };`,
    ],
    // Only HTTPS needs TLS.
    [
      `import { createServer } from 'node:https';`,
      `const createServer = (...given) => require('node:https').createServer(...given);`,
    ],
    [`import consola$1, { consola } from 'consola';`, `const consola$1 = console, consola = console;`],
  ),
  instead(/\/listhen\/dist\/index\.mjs$/, `export { l as listen } from './shared/listhen.tqe5I1Rl.mjs'`),
  // Follows every request for a way of closing that is not used: drain has its own. Loads TLS.
  instead(/\/http-shutdown\/index\.js$/, `export default server => server`),
  // Features of listhen that infer does not use: tunnels, the clipboard, WebSockets, a browser: 100 kB.
  instead(/\/untun\/dist\/index\.mjs$/, notInBundle('untun')),
  instead(/\/tinyclip\/dist\/index\.js$/, notInBundle('tinyclip')),
  instead(/\/crossws\/dist\/adapters\/node\.mjs$/, notInBundle('crossws')),
  instead(/\/listhen\/dist\/chunks\/xdg-open\.mjs$/, notInBundle('xdg-open')),
  // Its messages in English, without 50 other languages: 400 kB.
  instead(/\/zod\/v4\/locales\/index\.js$/, `export { default as en } from './en.js'`),
  // Describes a new schema in place: the copies of 900 described schemas took 4.7 MB resident.
  patch('zod/v4/classic/schemas.js', [
    'describe(description) {\n        const cl = this.clone();',
    'describe(description) {\n        const cl = core.globalRegistry.has(this) ? this.clone() : this;',
  ]),
]

const common: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  // Node 24 has it; rewritten for those that have not, it costs closures and arrays on every request.
  supported: { using: true },
  legalComments: 'none',
  write: false,
  outdir: '/',
  metafile: true,
  logLevel: 'warning',
}

/**
 * The program and the code of its threads, each in one CommonJS file: what the executable can hold. Without white space
 * and comments it takes 1 MB less of memory. Names stay, so that a stack can be read; lines are short, because Node prints
 * the one of what nobody caught.
 */
export async function bundleProgram(version: string, minifyWhitespace = true): Promise<Output[]> {
  const result = await bundle({
    ...common,
    minifyWhitespace,
    lineLimit: 160,
    entryPoints: {
      main: 'cli/main.ts',
      'store-writer': 'core/store/sqlite/writer.ts',
      'cpu-worker': join(packages, 'piscina/dist/worker.js'),
    },
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    define: {
      __INFER_VERSION__: JSON.stringify(version),
      __INFER_BUILD__: JSON.stringify(buildIdPlace),
      __INFER_LLAMA__: JSON.stringify(versionOf('node-llama-cpp')),
      'import.meta.url': '__importMetaUrl',
      // undici's own switch for a build with one HTTP parser instead of two.
      esbuildDetection: 'true',
    },
    banner: { js: `const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;` },
    plugins: [
      onlyAssetsKnowPlaces,
      ...onlyWhatIsUsed,
      // piscina starts the file beside it and lets that require the one with the task: here they are one file.
      patch('piscina/dist/index.js', [
        `(0, node_path_1.resolve)(__dirname, 'worker.js')`,
        `require(${JSON.stringify(join(root, 'core/assets.ts'))}).threadEntry('cpu-worker')`,
      ]),
      patch('piscina/dist/worker.js', [
        'Promise.resolve(`${filename}`).then(s => __importStar(require(s)))',
        `__importStar(require(${JSON.stringify(join(root, 'cli/cpu-worker.ts'))}))`,
      ]),
    ],
    // Optional native parts of packages, loaded inside a try.
    external: ['@napi-rs/nice', '@parcel/watcher', 'supports-color'],
  })
  return outputsOf(result).map(file => ({ ...file, path: relative('/', file.path), text: ascii(file.text) }))
}

/**
 * node-llama-cpp in two files instead of 860 in 95 packages, which halves the start of an engine. It must stay two:
 * it forks the second to find out whether its native code runs on this machine at all.
 */
export async function bundleLlama(): Promise<Output[]> {
  const folder = join(packages, 'node-llama-cpp/dist')
  const selfTest = 'bindings/utils/testBindingBinary.js'
  const files = await Promise.all(
    ['index.js', selfTest].map(async entry => {
      const from = dirname(join(folder, entry))
      const stayInPlace: Plugin = {
        name: 'files of node-llama-cpp believe to be where they were',
        setup(build): void {
          build.onResolve({ filter: /\/testBindingBinary\.js$/ }, ({ kind }) =>
            kind === 'entry-point'
              ? undefined
              : { path: `./${relative(from, join(folder, selfTest))}`, external: true },
          )
          build.onLoad({ filter: /\/node-llama-cpp\/dist\/.*\.js$/ }, ({ path }) => {
            const source = readFileSync(path, 'utf8')
            const own = `new URL(${JSON.stringify(`./${relative(from, path)}`)}, import.meta.url).href`
            return { contents: source.replaceAll('import.meta.url', own), loader: 'js' }
          })
        },
      }
      const result = await bundle({
        ...common,
        entryPoints: [join(folder, entry)],
        format: 'esm',
        // Its CommonJS dependencies ask for Node's own modules.
        banner: {
          js: `import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);`,
        },
        plugins: [stayInPlace],
        external: ['@node-llama-cpp/*', '@reflink/reflink', 'electron', 'supports-color'],
      })
      return { ...outputsOf(result)[0]!, path: join('node_modules/node-llama-cpp/dist', entry) }
    }),
  )
  return files
}

/**
 * sharp in one file. Only its search for native code is replaced, because that tries places which no form of the program
 * has; core/assets.ts explains what is wrong when the addon does not load.
 */
export async function bundleSharp(architecture: 'x64' | 'arm64'): Promise<Output[]> {
  const native = `require("@img/sharp-linux-${architecture}/sharp.node")`
  const findsItsAddon: Plugin = {
    name: 'sharp has one place for its addon',
    setup(build): void {
      build.onLoad({ filter: /\/sharp\/dist\/sharp\.cjs$/ }, ({ path }) => {
        if (readFileSync(path, 'utf8').split(`sharp = ${native};`).length !== 2)
          throw new Error(`${relative(root, path)} no longer holds exactly once: ${native}. See bin/README.md.`)
        return { contents: `module.exports = ${native}`, loader: 'js' }
      })
    },
  }
  const result = await bundle({
    ...common,
    entryPoints: [join(packages, 'sharp/dist/index.cjs')],
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    plugins: [findsItsAddon],
    external: ['@img/sharp-*'],
  })
  return outputsOf(result).map(file => ({ ...file, path: 'node_modules/sharp/dist/index.cjs' }))
}

/**
 * The decoders of sounds, an asset of their own: most servers have ffmpeg and never load them. Their WebAssembly is text
 * in which every character counts, so nothing of it is rewritten.
 */
export async function bundleAudioDecoders(): Promise<Output[]> {
  const result = await bundle({
    ...common,
    entryPoints: ['core/cpu/audio-decoders.ts'],
    format: 'cjs',
    charset: 'utf8',
    define: { 'import.meta.url': '__importMetaUrl' },
    banner: { js: `const __importMetaUrl = 'file:///audio-decoders.cjs';` },
    outExtension: { '.js': '.cjs' },
  })
  return outputsOf(result).map(file => ({ ...file, path: relative('/', file.path) }))
}

/** Paths of all files in the folder and below it, relative to it. */
export function filesBelow(folder: string, within = ''): string[] {
  return readdirSync(join(folder, within), { withFileTypes: true }).flatMap(entry => {
    const path = join(within, entry.name)
    return entry.isDirectory() ? filesBelow(folder, path) : entry.isFile() ? [path] : []
  })
}
