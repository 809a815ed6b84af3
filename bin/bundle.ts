import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { type BuildOptions, type BuildResult, build as bundle, type Plugin } from 'esbuild'
import { onlyWhatIsUsed, patch } from './only-what-is-used.ts'
import { shapesWhenRead } from './shapes-when-read.ts'

export const root = join(import.meta.dirname, '..')
const packages = realpathSync(join(root, 'node_modules'))

/** Where esbuild writes the build's id; it is known only once everything else is. */
export const buildIdPlace = '@@@@build-id@@@@'

interface BundleOutput {
  path: string
  text: string
  /** The files of which something is in it, relative to the root. */
  inputs: string[]
}

function outputsOf({ outputFiles, metafile }: BuildResult): BundleOutput[] {
  const about = new Map(Object.entries(metafile?.outputs ?? {}).map(([path, of]) => [join(root, path), of.inputs]))
  return (outputFiles ?? []).map(({ path, text }) => ({
    path: relative('/', path),
    text,
    inputs: Object.entries(about.get(path) ?? {}).flatMap(([input, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [input] : [],
    ),
  }))
}

const versionOf = (name: string): string =>
  (JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as { version: string }).version

/**
 * Own code makes shapes of schemas when they are read, and finds its files through core/assets.ts only: any other path is wrong
 * in two of the three forms.
 */
const ownCode: Plugin = {
  name: 'own code',
  setup(build): void {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8')
      const own = !path.includes(`${sep}node_modules${sep}`)
      if (own && /import\.meta\b/.test(contents) && path !== join(root, 'core/assets.ts'))
        throw new Error(`${relative(root, path)} uses import.meta, which a bundle does not keep. Ask core/assets.ts.`)
      return { contents: own ? shapesWhenRead(contents) : contents, loader: 'ts' }
    })
  },
}

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
export async function bundleProgram(version: string, minifyWhitespace = true): Promise<BundleOutput[]> {
  const result = await bundle({
    ...common,
    minifyWhitespace,
    lineLimit: 160,
    entryPoints: {
      main: 'cli/main.ts',
      keeper: 'cli/keeper.ts',
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
      ownCode,
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
  const outputs = outputsOf(result)
  // 340 kB of text, and as much again in classes: the thread has no schema.
  if (outputs.find(({ path }) => path === 'store-writer.cjs')!.inputs.some(path => path.includes('/zod/')))
    throw new Error(
      'The thread that writes the store has zod in it. Import what needs no schema from a file of its own.',
    )
  return outputs.map(file => ({ ...file, text: ascii(file.text) }))
}

/**
 * node-llama-cpp in two files instead of 860 in 95 packages, which halves the start of an engine. It must stay two:
 * it forks the second to find out whether its native code runs on this machine at all.
 */
export async function bundleLlama(): Promise<BundleOutput[]> {
  const folder = join(packages, 'node-llama-cpp/dist')
  const selfTest = 'bindings/utils/testBindingBinary.js'
  return Promise.all(
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
}

/**
 * sharp in one file. Only its search for native code is replaced, because that tries places which no form of the program
 * has; core/assets.ts explains what is wrong when the addon does not load.
 */
export async function bundleSharp(architecture: 'x64' | 'arm64'): Promise<BundleOutput[]> {
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
export async function bundleAudioDecoders(): Promise<BundleOutput[]> {
  const result = await bundle({
    ...common,
    entryPoints: ['core/cpu/audio-decoders.ts'],
    format: 'cjs',
    charset: 'utf8',
    define: { 'import.meta.url': '__importMetaUrl' },
    banner: { js: `const __importMetaUrl = 'file:///audio-decoders.cjs';` },
    outExtension: { '.js': '.cjs' },
  })
  return outputsOf(result)
}

/** Paths of all files in the folder and below it, relative to it. */
export function filesBelow(folder: string, within = ''): string[] {
  return readdirSync(join(folder, within), { withFileTypes: true }).flatMap(entry => {
    const path = join(within, entry.name)
    return entry.isDirectory() ? filesBelow(folder, path) : entry.isFile() ? [path] : []
  })
}

/**
 * esbuild escapes what is not ASCII in strings but leaves it in regular expressions and comments, and one such
 * character makes V8 hold the whole source in two bytes a character: 4 MB more for as long as the program runs.
 */
const ascii = (text: string): string =>
  text.replace(
    /[^ -~\s]|\u2028|\u2029|\ufeff|\u00a0/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The files of gpu/worker that `infer engine setup` installs, by their paths. */
export function workerFiles(): Record<string, string> {
  const folder = join(root, 'gpu/worker')
  const paths = filesBelow(folder).filter(path => /^(infer_worker\/[a-z0-9_]+\.py|lock-[a-z]+\.txt)$/.test(path))
  return Object.fromEntries(paths.toSorted().map(path => [path, readFileSync(join(folder, path), 'utf8')]))
}
