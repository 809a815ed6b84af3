import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { executionStatuses, nodeStatuses } from '../core/dag/execution-state.ts'
import { taskTable } from '../core/schemas/task-table.ts'
import { jobStatuses } from '../core/store/store.ts'
import { importedPath, importsIn } from './_imports.ts'

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter(path => path !== '' && existsSync(path))
const sources = files.filter(path => /^(bin|cli|server|core|gpu)\/.*\.tsx?$/.test(path))
const consoleFolder = 'server/console/app/'
const read = (path: string) => readFileSync(path, 'utf8')

/** Every module that a file imports, statically or not: package names as they are, own files from the root. */
const importsOf = (path: string): string[] => importsIn(read(path)).map(one => importedPath(path, one))

const rooms: Record<string, { own: RegExp; packages: RegExp }> = {
  core: {
    own: /^core\//,
    packages:
      /^(node:|zod$|better-sqlite3$|piscina$|yaml$|node-llama-cpp$|@huggingface\/hub$|@audio\/decode-\w+$|sharp$|ipaddr\.js$|undici$|wasm-media-encoders$|re2js$)/,
  },
  server: {
    own: /^(server|core)\//,
    packages: /^(node:|zod$|h3$|listhen$|prom-client$|undici$|ws$|@fastify\/busboy$)/,
  },
  gpu: { own: /^(gpu|core)\//, packages: /^(node:|zod$|execa$|undici$|ws$|node-llama-cpp$|@huggingface\/jinja$)/ },
  // What runs in the browser knows the rest only by the API, by the grammar of references, by plain data of tasks, and by
  // how amounts of money, titles of conversations and conversations as Markdown are written.
  [consoleFolder.slice(0, -1)]: {
    own: /^(server\/console\/app\/|core\/(money-text|conversations\/(markdown|title)|workflows\/references|schemas\/task-table|store\/job-prompt)\.ts$)/,
    packages:
      /^(react(-dom(\/client)?)?$|wouter$|lucide-react$|@tanstack\/react-query$|openapi-fetch$|eventsource-parser\/stream$|@xyflow\/react$|@dagrejs\/dagre$|uplot$|@codemirror\/[\w-]+$|@lezer\/[\w-]+$|marked$|temml$|yaml$)/,
  },
  cli: {
    own: /^(cli|server|core|gpu)\//,
    packages:
      /^(node:|zod$|@commander-js\/extra-typings$|consola(\/|$)|eventsource-parser$|openapi-fetch$|undici$|uqr$|yaml$)/,
  },
}

test.each(Object.keys(rooms))('%s imports only what it may know', room => {
  const { own, packages } = rooms[room]!
  const wrong = sources
    .filter(path => path.startsWith(`${room}/`) && (room !== 'server' || !path.startsWith(consoleFolder)))
    .flatMap(path =>
      importsOf(path)
        .filter(to => !(own.test(to) || packages.test(to)))
        .map(to => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

test.each([
  'core/money-text.ts',
  'core/conversations/markdown.ts',
  'core/conversations/title.ts',
  'core/workflows/references.ts',
  'core/schemas/task-table.ts',
  'core/store/job-prompt.ts',
])('%s, which the console bundles, imports nothing', path => expect(importsOf(path)).toEqual([]))

test('only the composition roots know the server and the GPUs at once', () => {
  const both = sources.filter(path => {
    const imports = importsOf(path)
    return imports.some(to => to.startsWith('server/')) && imports.some(to => to.startsWith('gpu/'))
  })
  expect(both.sort()).toEqual(['cli/server/app.ts', 'cli/server/front-parts.ts'])
})

/**
 * The folders of each room, lowest first; `.` are the files beside them. A folder may import those before it, types
 * included.
 */
const layers: Record<string, readonly string[]> = {
  core: [
    '.',
    'schedule',
    'schemas',
    'dag',
    'store',
    'accounts',
    'models',
    'files',
    'cpu',
    'media',
    'dialects',
    'tasks',
    'admission',
    'jobs',
    'responses',
    'conversations',
    'workflows',
    'batches',
    'webhooks',
  ],
  // The root files are above all: routes.ts is the table of every route, server.ts opens everything.
  server: [
    'metrics',
    'http/connection',
    'http/access',
    'http/streams',
    'http/request',
    'http/body',
    'http/answer',
    'http',
    'views',
    'work',
    'surfaces/anthropic',
    'surfaces/cohere',
    'surfaces/fal',
    'surfaces/mcp',
    'surfaces/native',
    'surfaces/ollama',
    'surfaces/openai',
    'surfaces/realtime',
    'surfaces/replicate',
    'surfaces/slug',
    'docs',
    'console',
    'fronts',
    '.',
  ],
  // The root files are above all: main.ts starts the program.
  cli: [
    'terminal',
    'client',
    'help',
    'accounts',
    'webhooks',
    'usage',
    'status',
    'tokens',
    'files',
    'audio',
    'batches',
    'chat',
    'jobs',
    'serve',
    'logs',
    'service',
    'kubernetes',
    'config',
    'models',
    'engines',
    'doctor',
    'generation',
    'workflows',
    'executions',
    'completion',
    'takeover',
    'server',
    'commands',
    '.',
  ],
  gpu: [
    'sandbox',
    'devices',
    'launcher',
    'engines',
    'estimate',
    'presets',
    'residency',
    'affinity',
    'pauses',
    'placement',
    'caches',
    'requests',
    'pool-checks',
    '.',
  ],
}
/** The machinery of the server and each of its surfaces are folders of their own. */
const folderOf = (path: string) => {
  const [, folder, ...more] = path.split('/')
  if (more.length === 0) return '.'
  const isNested = path.startsWith('server/http/') || path.startsWith('server/surfaces/')
  return isNested && more.length > 1 ? `${folder}/${more[0]}` : folder!
}

describe.each(Object.entries(layers))('the folders of %s', (room, order) => {
  const own = sources.filter(path => path.startsWith(`${room}/`) && !path.startsWith(consoleFolder))
  const edges = own.flatMap(path =>
    importsOf(path)
      .filter(to => to.startsWith(`${room}/`) && folderOf(to) !== folderOf(path))
      .map(to => ({ path, to, from: folderOf(path), into: folderOf(to) })),
  )

  test('each has its place in the order', () => {
    expect([...new Set(own.map(folderOf))].sort()).toEqual([...order].sort())
  })

  test('lower ones never import higher ones', () => {
    const wrong = edges
      .filter(({ from, into }) => order.indexOf(into) > order.indexOf(from))
      .map(({ path, to }) => `${path} imports ${to}`)
    expect(wrong).toEqual([])
  })

  test('no two import each other', () => {
    const pairs = new Set(edges.map(({ from, into }) => `${from} imports ${into}`))
    const mutual = [...pairs].filter(pair => pairs.has(pair.split(' imports ').toReversed().join(' imports ')))
    expect(mutual).toEqual([])
  })
})

test('a surface of the server knows no other surface, and nothing that stands beside them', () => {
  const wrong = sources
    .filter(path => path.startsWith('server/surfaces/'))
    .flatMap(path =>
      importsOf(path)
        .filter(to => /^server\/(surfaces|docs|console)\//.test(to) && folderOf(to) !== folderOf(path))
        .map(to => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

test('a view knows no request', () => {
  const views = sources.filter(path => path.startsWith('server/views/'))
  expect(views.filter(path => importsOf(path).includes('server/http/request/exchange.ts'))).toEqual([])
})

test('no two files of the server import each other, directly or not, types included', () => {
  const own = sources.filter(path => path.startsWith('server/') && !path.startsWith(consoleFolder))
  expect(cyclesOf(own, importsOf)).toEqual([])
})

/** What is loaded with a file: imports of types alone and dynamic imports are left out. */
const valueImportsOf = (path: string): string[] =>
  importsIn(read(path))
    .filter(({ kind }) => kind === 'value')
    .map(one => importedPath(path, one))

/** Groups of files that import each other, over any number of steps (Tarjan). */
function cyclesOf(paths: readonly string[], importsOf: (path: string) => readonly string[]): string[][] {
  const known = new Set(paths)
  const at = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[][] = []
  const visit = (path: string): void => {
    at.set(path, at.size)
    lowest.set(path, at.get(path)!)
    stack.push(path)
    for (const to of importsOf(path)) {
      if (!known.has(to)) continue
      if (!at.has(to)) visit(to)
      if (stack.includes(to)) lowest.set(path, Math.min(lowest.get(path)!, lowest.get(to)!))
    }
    if (lowest.get(path) !== at.get(path)) return
    const cycle = stack.splice(stack.indexOf(path))
    if (cycle.length > 1) cycles.push(cycle.sort())
  }
  for (const path of paths) if (!at.has(path)) visit(path)
  return cycles
}

test('cycles are found', () => {
  const imports: Record<string, string[]> = { a: ['b'], b: ['c'], c: ['b', 'd'], d: [], e: ['a', 'f'], f: ['e'] }
  expect(cyclesOf(Object.keys(imports), path => imports[path]!)).toEqual([
    ['b', 'c'],
    ['e', 'f'],
  ])
})

test('no two files import values of each other, directly or not', () => {
  expect(cyclesOf(sources, valueImportsOf)).toEqual([])
})

test('no file and no folder is a drawer', () => {
  const drawer = /^(utils?|helpers?|common|misc|shared|lib|types|interfaces|services|managers|controllers)(\.[a-z]+)*$/
  expect(files.filter(path => path.split('/').some(part => drawer.test(part)))).toEqual([])
})

test('no source file is past 400 lines', () => {
  expect(sources.filter(path => read(path).split('\n').length > 401)).toEqual([])
})

test('no code asks for the maker of a card outside gpu/devices', () => {
  const asks = /\bkind (?:[!=]==) '(?:nvidia|amd|intel)'|\bkind: '(?:nvidia|amd|intel)'(?! \|)/
  expect(sources.filter(path => !path.startsWith('gpu/devices/') && asks.test(read(path)))).toEqual([])
})

const exportLine =
  /^export (?:default )?(?:async )?(?:abstract )?(?:function\*?|const|let|type|interface|class) ?(\w+)/gm
const wordsOf = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split('-')
const shareAWord = (a: string, b: string): boolean =>
  wordsOf(a).some(one => wordsOf(b).some(other => one.slice(0, 3) === other.slice(0, 3)))

/** Files with several exports are named after their topic, commands after the command. */
test('a file with one export is named after it', () => {
  const wrong = sources
    .filter(path => !path.startsWith('bin/') && !path.startsWith('core/assets/'))
    .flatMap(path => {
      const names = new Set([...read(path).matchAll(exportLine)].map(([, name]) => name!))
      const [only] = names
      if (names.size !== 1 || only === undefined || only === 'define') return []
      return shareAWord(basename(path).replace(/\.tsx?$/, ''), only) ? [] : [`${path} exports ${only}`]
    })
  expect(wrong).toEqual([])
})

test('SQL is written in core/store only', () => {
  const sql = /\b(SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b/
  expect(sources.filter(path => !path.startsWith('core/store/') && sql.test(read(path)))).toEqual([])
})

// A test that loads another copy cuts the shared memory of a store in the same process: now and then a signal ends both.
test('SQLite is loaded in one place, by tests too', () => {
  const loads = /\b(from|import\()\s*'(better-sqlite3|node:sqlite)'/
  const allowed = /^(core\/store\/sqlite\/(database|columns)|test\/fixtures\/weaken-durability)\.ts$/
  const code = files.filter(path => /\.tsx?$/.test(path))
  expect(code.filter(path => loads.test(read(path)) && !allowed.test(path))).toEqual([])
})

test('the environment is read in one place', () => {
  // The launchers of the program itself ask before any configuration exists. Samples are code that people run.
  const allowed =
    /^(server\/console\/app\/pages\/playground\/samples|core\/config|core\/assets|core\/extract\w*|cli\/main|bin\/.*)\.ts$/
  expect(
    sources.filter(
      path => /process\.env\b/.test(read(path)) && !allowed.test(path) && !path.startsWith('core/assets/'),
    ),
  ).toEqual([])
})

test('only the entries end their process', () => {
  expect(
    sources.filter(
      path => /process\.exit\(/.test(read(path)) && !/^cli\/(main|keeper)\.ts$/.test(path) && !path.startsWith('bin/'),
    ),
  ).toEqual([])
})

test('the states of jobs, executions and nodes are the same words in the code and in the schema of the store', () => {
  const schema = files
    .filter(path => path.startsWith('core/store/sqlite/migrations/'))
    .map(read)
    .join('\n')
  for (const status of [...jobStatuses, ...executionStatuses]) expect(schema).toContain(`'${status}'`)
  // That a node runs or waits is told by its job.
  for (const status of nodeStatuses.filter(one => one !== 'running' && one !== 'waiting'))
    expect(schema).toContain(`'${status}'`)
})

const readmes = files.filter(path => /(^|\/)README\.md$/.test(path))
const guides = [...readmes, 'CONTRIBUTING.md']
const quoted = (path: string) => [...read(path).matchAll(/`([^`\n]+)`/g)].map(([, text]) => text!)

test.each(guides)('every path that %s names exists', guide => {
  const paths = quoted(guide).filter(text => /^(bin|cli|server|core|gpu|test)\/[\w./-]*$/.test(text))
  // Shorter ones are in the folder of the guide; those of the build exist only once it has run.
  const shorter = quoted(guide).filter(text => /^[\w-]+\/[\w./-]+\.ts$/.test(text) && !text.endsWith('.generated.ts'))
  // Elsewhere a file may stand without its folder.
  const names = quoted(guide).filter(text => /^[\w.-]+\.ts$/.test(text))
  expect([
    ...paths.filter(path => !existsSync(path)),
    ...shorter.filter(path => !existsSync(path) && !existsSync(join(dirname(guide), path))),
    ...names.filter(name => !files.some(path => basename(path) === name)),
  ]).toEqual([])
})

test('README.md and CONTRIBUTING.md name the folders of the tree', () => {
  for (const guide of ['README.md', 'CONTRIBUTING.md'])
    expect(quoted(guide)).toEqual(expect.arrayContaining(['bin/', 'cli/', 'server/', 'core/', 'gpu/', 'test/']))
})

test('CONTRIBUTING.md lists the README of every folder', () => {
  const listed = quoted('CONTRIBUTING.md').filter(text => text.endsWith('/README.md'))
  expect(listed.sort()).toEqual(readmes.filter(path => path !== 'README.md').sort())
})

test('every script and every file in the commands of CONTRIBUTING.md exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const text = read('CONTRIBUTING.md')
  const called = [...text.matchAll(/\bnpm (?:run (?:--silent )?)?([a-z]+(?::[a-z]+)?)/g)].map(([, name]) => name!)
  // npm's own commands stand beside the scripts.
  expect([...new Set(called)].filter(name => !(name in scripts) && !['ci', 'run'].includes(name))).toEqual([])
  const named = [...text.matchAll(/(?<![\w/])((?:bin|cli|server|core|gpu|test)\/[\w./-]+\.(?:ts|json))/g)]
  expect(named.length).toBeGreaterThan(10)
  expect(named.map(([, path]) => path!).filter(path => !existsSync(path))).toEqual([])
})

test('a test file mirrors what it tests', () => {
  const folders = files
    .filter(path => /^test\/(core|server|gpu|cli)\/.*\.test\.ts$/.test(path))
    .map(path => dirname(path).replace(/^test\//, ''))
  expect([...new Set(folders)].filter(folder => !existsSync(folder))).toEqual([])
})

test('basenames are kebab-case', () => {
  expect(sources.filter(path => !/^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.tsx?$/.test(basename(path)))).toEqual([])
})

test('what lies below the tasks does not know them', () => {
  const below = /^core\/([^/]+\.ts|(schemas|dag|store|accounts|models|files|media)\/.*)$/
  const wrong = sources
    .filter(path => below.test(path))
    .flatMap(path =>
      importsOf(path)
        .filter(to => to.startsWith('core/tasks/'))
        .map(to => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

test('tasks know neither jobs nor workflows', () => {
  const wrong = sources
    .filter(path => path.startsWith('core/tasks/'))
    .flatMap(path =>
      importsOf(path)
        .filter(to => /^core\/(admission|jobs|workflows|batches|webhooks)\//.test(to))
        .map(to => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

/** Comparisons of a value with the id of a task, or with the beginning of one. */
const taskBranch =
  /([=!]==?\s*|\bcase\s+|\.(includes|has|startsWith|indexOf)\()\(?['"`](std|slug)\/|['"`](std|slug)\/[\w-]*['"`]\s*[=!]==?/
/** The ids of tasks, and the records, which are the tasks. */
const knowsTasks = /^core\/(schemas\/task(-table)?\.ts$|tasks\/)/

test.each([
  ["if (task === 'std/audio-speech')", true],
  ["'std/score' !== task", true],
  ["switch (task) { case 'std/rerank': }", true],
  ["model.tasks.includes('std/embeddings')", true],
  ["task.startsWith('slug/')", true],
  ["const table = { 'std/rerank': 1 }", false],
  ["answer: call => infer('std/rerank', call)", false],
])('%s: a branch on a task is %s', (code, isBranch) => expect(taskBranch.test(code)).toBe(isBranch))

const taskIds = Object.keys(taskTable)

/** The text of a file with strings joined that are put together from constants: `'std/' + 'rerank'`, `std/${'rerank'}`. */
const joined = (text: string): string =>
  text.replaceAll(/(['"`])\s*\+\s*(['"`])/g, '').replaceAll(/\$\{\s*(['"`])([^'"`$]*)\1\s*\}/g, '$2')

/** Whether the text names the task: its id in code, prose or a comment, or its prefix and its last part as strings. */
function namesTask(text: string, id: string): boolean {
  const [prefix, name] = id.split('/') as [string, string]
  if (new RegExp(`\\b${id}(?![\\w-])`).test(joined(text))) return true
  return new RegExp(`(?<![/\\w])${prefix}/(['"\`]|\\$\\{)`).test(text) && new RegExp(`['"\`]${name}['"\`]`).test(text)
}

/** Constants that hold the id of one task, by their names: an import of one from another folder names the task, too. */
const taskConstants = new Map(
  sources.flatMap(path =>
    [...read(path).matchAll(/export const (\w+)(?:: \w+)? = (?:'([\w/-]+)'|\{(?:\s*id:)\s*'([\w/-]+)')/g)].flatMap(
      ([, name, plain, inRecord]) => {
        const id = plain ?? inRecord ?? ''
        // The role of one task in every dialect, which another task could take over: whoever uses it knows no id.
        return taskIds.includes(id) && name !== 'conversationTask' ? [[`${path} ${name}`, id] as const] : []
      },
    ),
  ),
)

/** The tasks whose constants a file imports from another folder. */
function importedTasks(path: string): string[] {
  const imports = read(path).matchAll(/import (?:type )?\{([^}]*)\} from '(\.[^']+)'/g)
  return [...imports].flatMap(([, names = '', from = '']) => {
    const file = normalize(join(dirname(path), from))
    // A task that does its work by the code of another one is no other place to change.
    if (file.startsWith('core/tasks/') && path.startsWith('core/tasks/')) return []
    return names.split(',').flatMap(name => taskConstants.get(`${file} ${name.trim()}`) ?? [])
  })
}

test.each([
  ["task: 'std/rerank',", true],
  ['/** Like `std/rerank`. */', true],
  ["const task = 'std/' + 'rerank'", true],
  ["const task = `std/${'rerank'}`", true],
  ["const by = 'rerank'; const task = `std/${by}`", true],
  ['const task = prefix + \'x\'; task === "std/rerank"', true],
  ["path: '/std/v1/rerank'", false],
  ["aliases: ['std/reranking']", false],
  ["isFor(tasks, 'rerank')", false],
])('%s names std/rerank: %s', (code, names) => expect(namesTask(code, 'std/rerank')).toBe(names))

test.each(taskIds)('%s is named in at most 6 TypeScript files of the product', id => {
  const naming = sources.filter(path => namesTask(read(path), id) || importedTasks(path).includes(id))
  expect(naming.length, naming.join('\n')).toBeLessThanOrEqual(6)
  expect(naming.length).toBeGreaterThan(0)
})

test('no code asks which task it has: it reads the record', () => {
  const files = sources.filter(path => !knowsTasks.test(path) && !/^\s*route\(\{$/m.test(read(path)))
  expect(files.filter(path => taskBranch.test(read(path)))).toEqual([])
})

/** Comparisons of an engine with the name of a preset, and switches over engines. */
const presetNames = sources
  .filter(path => path.startsWith('gpu/presets/'))
  .flatMap(path => [...read(path).matchAll(/^ {2}name: '([\w-]+)',$/gm)].map(([, name]) => name!))
const oneName = `['"\`](${presetNames.join('|')})['"\`]`
const engineBranch = new RegExp(
  [
    `\\bengine\\b['"]?[\\])]?\\??\\s*[!=]==?\\s*${oneName}`,
    `${oneName}\\s*[!=]==?\\s*[\\w.?()]*\\bengine\\b`,
    `\\bengine\\b\\??\\.(includes|startsWith|endsWith)\\(\\s*${oneName}`,
    `${oneName}\\s*,?\\s*\\]\\.(includes|indexOf)\\([\\w.?]*\\bengine\\b`,
    String.raw`\bswitch\s*\([\w.?]*\bengine\b`,
  ].join('|'),
)
test('the names of the presets are found', () => expect(presetNames).toContain('llama-server'))

test.each([
  ["if (engine === 'vllm')", true],
  ["model.engine !== 'gguf' ? a : b", true],
  ["'sglang' === build.engine", true],
  ["['gguf', 'llama-server'].includes(model.engine)", true],
  ["engine.startsWith('vllm')", true],
  ['switch (model.engine) {', true],
  ["model.engine === other.engine && kind === 'gguf'", false],
  ["{ engine: 'vllm' }", false],
])('%s: a branch on an engine is %s', (code, isBranch) => expect(engineBranch.test(code)).toBe(isBranch))

test('no code outside the presets asks which engine it has: it reads the preset', () => {
  const found = sources.filter(path => !path.startsWith('gpu/presets/') && engineBranch.test(read(path)))
  expect(found).toEqual([])
})

/** What reaches the owners past the arguments of a function, or the store past its owners. */
const bypassesOwners = /\bcall\.owners\b|\bowners!?\.store\b|\bstore\b[^{}]*\}\s*=\s*(call\.)?owners\b/

test.each([
  ['const { files } = call.owners', true],
  ['owners.store.jobs.find(organizationId, id)', true],
  ['const { fleet, store } = owners', true],
  ['const { fleet, store, calls } = owners', true],
  ['const { jobs } = owners', false],
  ['owners.jobs.find(organizationId, id)', false],
])('%s: bypassing the owners is %s', (code, bypasses) => expect(bypassesOwners.test(code)).toBe(bypasses))

test('a function of the server is given the owners that it needs, and no more', () => {
  const files = sources.filter(path => path.startsWith('server/'))
  expect(files.filter(path => bypassesOwners.test(read(path)))).toEqual([])
  expect(read('server/http/request/exchange.ts')).not.toMatch(/^\s+(readonly\s+)?#?owners\b|\bthis\.#?owners\b/m)
  // The server assembles all owners, and the table of routes passes them on.
  const takeAll = ['server/routes.ts', 'server/server.ts']
  expect(files.filter(path => /:\s*(Readonly<)?Owners\b(?![[<])/.test(read(path))).sort()).toEqual(takeAll)
})

test('no handler uses the store', () => {
  expect(read('server/http/request/owners.ts')).not.toMatch(/^\s+store\b/m)
  // Idempotency records are the server's own; metrics count what the store has done.
  const allowed = ['server/http/request/idempotency-records.ts', 'server/metrics/metrics.ts', 'server/server.ts']
  const named = sources.filter(path => path.startsWith('server/') && /^import type \{[^}]*\bStore\b/m.test(read(path)))
  expect(named.sort()).toEqual(allowed)
})
