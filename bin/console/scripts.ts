import { isAbsolute, join, relative } from 'node:path'
import { type ChunkingContext, rolldown } from 'rolldown'
import { root } from '../bundle.ts'

/** One script of the console. */
interface Script {
  /** `assets/main-<hash>.js` */
  path: string
  text: string
  /** The source that begins it, relative to the root; empty for a chunk that several share. */
  entry: string
  /** Sources of which something is in it, relative to the root. */
  inputs: string[]
  /** Paths of the scripts that it needs before it runs. */
  imports: string[]
}

/** Browsers whose language the scripts and styles may use. */
export const browsers = ['chrome123', 'firefox121', 'safari17.5']

const sourceOf = (path: string): string => join(root, 'server/console/app', path)
const entries = {
  main: sourceOf('main.tsx'),
  'link-page': sourceOf('link-page/main.tsx'),
  'first-session': sourceOf('api/first-session.ts'),
  'layout-worker': sourceOf('components/graph/layout-worker.ts'),
}
/** How many pages use a module that is loaded with the first page. */
const shareCount = 3

/**
 * Bundles the scripts. A browser opens six connections, so the first screen must not consist of forty small files. There are
 * three large chunks: `base` is what the console and the page of links need, `console` what only the console needs from the
 * start, `shared` what many pages of it use.
 */
export async function bundleScripts(): Promise<Script[]> {
  await using bundle = await rolldown({
    cwd: root,
    input: entries,
    platform: 'browser',
    // Entries may export what other chunks use.
    preserveEntrySignatures: 'allow-extension',
    transform: { target: browsers, define: { 'process.env.NODE_ENV': '"production"' } },
    onLog(level, { code, message }) {
      // `'use client'` of packages means nothing here: no component runs in the server.
      if (code !== 'MODULE_LEVEL_DIRECTIVE') process.stderr.write(`${level}: ${message}\n`)
    },
  })
  let chunkOf: ((id: string) => string | null) | undefined
  const { output } = await bundle.generate({
    format: 'esm',
    minify: true,
    comments: { legal: false },
    entryFileNames: 'assets/[name]-[hash].js',
    chunkFileNames: 'assets/[name]-[hash].js',
    hashCharacters: 'hex',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'by use', name: (id, context) => (chunkOf ??= chunks(context))(id) }],
    },
  })
  return output
    .filter(one => one.type === 'chunk')
    .map(({ fileName, code, facadeModuleId, modules, imports }) => ({
      path: fileName,
      text: code,
      entry: facadeModuleId ? relative(root, facadeModuleId) : '',
      inputs: Object.entries(modules)
        .filter(([id, { renderedLength }]) => isAbsolute(id) && renderedLength > 0)
        .map(([id]) => relative(root, id)),
      imports,
    }))
}

/** The chunk in which a module is, by its path; null where the bundler decides. */
function chunks(context: ChunkingContext): (id: string) => string | null {
  /** Modules that run before this one, and itself; `later`: also what they load later. */
  function closureOf(id: string, later = false): Set<string> {
    const all = new Set([id])
    for (const one of all) {
      const { importedIds = [], dynamicallyImportedIds = [] } = context.getModuleInfo(one) ?? {}
      for (const imported of importedIds) all.add(imported)
      if (later) for (const imported of dynamicallyImportedIds) all.add(imported)
    }
    return all
  }
  const first = closureOf(entries.main)
  const link = closureOf(entries['link-page'], true)
  const pages = new Set([...first].flatMap(id => context.getModuleInfo(id)?.dynamicallyImportedIds ?? []))
  const counts = new Map<string, number>()
  for (const page of pages) for (const id of closureOf(page)) counts.set(id, (counts.get(id) ?? 0) + 1)
  const alone = new Set(Object.values(entries))
  return id => {
    const isShared = (counts.get(id) ?? 0) >= shareCount
    if (alone.has(id) || !(first.has(id) || isShared)) return null
    // The page of links loads nothing of the console, which would ask for a session.
    if (link.has(id)) return 'base'
    return first.has(id) ? 'console' : 'shared'
  }
}
