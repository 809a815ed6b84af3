import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { compile } from '@tailwindcss/node'
import { Scanner } from '@tailwindcss/oxide'
import { transform } from 'esbuild'
import { root } from '../bundle.ts'
import { fontFiles } from './fonts.ts'
import { browsers, bundleScripts } from './scripts.ts'

/** One file of the web console, as the server sends it. */
interface ConsoleFile {
  /** Below `/console/`: `assets/main-<hash>.js`. */
  path: string
  /** Compressed, by the name of the encoding; or the bytes of a font, whose format is compressed. */
  content: { br: Uint8Array; gzip: Uint8Array } | Uint8Array
  /** Sources of which something is in it, relative to the root. */
  inputs: string[]
}

const consoleFolder = join(root, 'server/console/app')
const contentType: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css' }
const fontType = 'font/woff2'

/**
 * Builds the web console: scripts in chunks, of which a page loads its own when it is opened, and one stylesheet. Names
 * have a hash of the content, so that browsers may keep them for ever. `previous` is the folder of the last build, of
 * which the compressed files are taken if they exist: compressing takes longer than everything else. `preloads`: for each
 * page, by the name of its folder, the elements that load its scripts together with those of the console.
 */
export async function buildConsole(
  previous: string,
): Promise<{ files: ConsoleFile[]; page: string; linkPage: string; preloads: Record<string, string> }> {
  const fonts = fontFiles().map(font => ({ ...font, path: `assets/${hashedName(font.source, font.bytes)}` }))
  const faces = fonts.map(({ rule, path }) => rule(basename(path))).join('')
  const [scripts, rules] = await Promise.all([bundleScripts(), stylesheet()])
  const css = faces + rules
  const styles = { path: `assets/main-${hashOf(css)}.css`, text: css, inputs: ['node_modules/tailwindcss/index.css'] }
  const scriptOf = (name: string) => scripts.find(({ path }) => path.startsWith(`assets/${name}-`))!
  const main = scriptOf('main')
  const texts = [...scripts, styles].map(({ path, text, inputs }) => ({
    path,
    inputs,
    content: {
      br: kept(join(previous, `${path}.br`)) ?? brotli(text),
      gzip: kept(join(previous, `${path}.gz`)) ?? gzipSync(text, { level: 9 }),
    },
  }))
  const files = [...texts, ...fonts.map(({ path, bytes, source }) => ({ path, inputs: [source], content: bytes }))]
  const pageOf = (name: string) =>
    readFileSync(join(consoleFolder, name), 'utf8')
      .replace('{styles}', `/console/${styles.path}`)
      .replace('{font}', `/console/${fonts.find(({ isFirst }) => isFirst)!.path}`)
  const link = scriptOf('link-page')
  const linkPage = pageOf('link-page/link-page.html')
    .replace('{script}', `/console/${link.path}`)
    .replace('{preload}', preloading(link.imports))
  const page = pageOf('index.html')
    .replace('{layout-worker}', `/console/${scriptOf('layout-worker').path}`)
    .replace('{first-session}', `/console/${scriptOf('first-session').path}`)
    .replace('{script}', `/console/${main.path}`)
    .replace('{preload}', preloading(main.imports))
  const importsOf = (path: string): string[] => scripts.find(one => one.path === path)!.imports
  const present = closureOf([main.path], importsOf)
  const preloads = scripts.flatMap(({ path, entry }) => {
    const name = /console\/app\/pages\/([^/]+)\/\1\.tsx$/.exec(entry)?.[1]
    const missing = [...closureOf([path], importsOf)].filter(one => !present.has(one))
    return name === undefined ? [] : [[name, preloading(missing)]]
  })
  return { files, page, linkPage, preloads: Object.fromEntries(preloads) as Record<string, string> }
}

const preloading = (paths: readonly string[]): string =>
  paths.map(path => `<link rel="modulepreload" href="/console/${path}" />`).join('')

/** These files and all that they import, directly or not. */
function closureOf(paths: readonly string[], importsOf: (path: string) => string[]): Set<string> {
  const all = new Set(paths)
  for (const path of all) for (const one of importsOf(path)) all.add(one)
  return all
}

/** The content type of a file of the console. */
export const typeOfFile = (path: string): string =>
  extname(path) === '.woff2' ? fontType : `${contentType[extname(path)]!}; charset=utf-8`

const kept = (path: string): Uint8Array | undefined => (existsSync(path) ? readFileSync(path) : undefined)
const brotli = (text: string): Uint8Array =>
  brotliCompressSync(text, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length },
  })
const hashOf = (text: string | Uint8Array): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 8).toUpperCase()

/** `geist-latin-<hash>.woff2` */
const hashedName = (source: string, bytes: Uint8Array): string =>
  `${basename(source, '-wght-normal.woff2')}-${hashOf(bytes)}.woff2`

/** Tailwind's classes that the sources use, and the styles of the libraries that draw. */
async function stylesheet(): Promise<string> {
  const source = join(consoleFolder, 'styles.css')
  const compiler = await compile(readFileSync(source, 'utf8'), { base: dirname(source), onDependency: () => {} })
  const scanner = new Scanner({
    sources: ['**/*.tsx', 'components/colours.ts'].map(pattern => ({ base: consoleFolder, pattern, negated: false })),
  })
  const packages = realpathSync(join(root, 'node_modules'))
  const libraries = ['@xyflow/react/dist/style.css', 'uplot/dist/uPlot.min.css'].map(path =>
    readFileSync(join(packages, path), 'utf8'),
  )
  const { code } = await transform([compiler.build(scanner.scan()), ...libraries].join('\n'), {
    loader: 'css',
    minify: true,
    legalComments: 'none',
    target: browsers,
  })
  return code
}
