import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { executionStatuses, nodeStatuses } from '../core/dag/advance.ts'
import { jobStatuses } from '../core/store/store.ts'

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter(path => path !== '' && existsSync(path))
const sources = files.filter(path => /^(bin|cli|server|core|gpu)\/.*\.tsx?$/.test(path))
const consoleFolder = 'server/console/app/'
const read = (path: string) => readFileSync(path, 'utf8')

/** Every module that a file imports, statically or not: package names as they are, own files from the root. */
function importsOf(path: string): string[] {
  const found = read(path).matchAll(
    /(?:^|\n)(?:import|export)\s[^;'"]*?\sfrom\s+['"]([^'"]+)['"]|(?:^|\n)import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g,
  )
  return [...found]
    .map(match => (match[1] ?? match[2] ?? match[3])!)
    .map(to => (to.startsWith('.') ? normalize(join(dirname(path), to)) : to))
}

const rooms: Record<string, { own: RegExp; packages: RegExp }> = {
  core: {
    own: /^core\//,
    packages:
      /^(node:|zod$|better-sqlite3$|piscina$|yaml$|node-llama-cpp$|@huggingface\/hub$|@audio\/decode-\w+$|sharp$|ipaddr\.js$|undici$|wasm-media-encoders$)/,
  },
  server: {
    own: /^(server|core)\//,
    packages: /^(node:|zod$|h3$|listhen$|prom-client$|undici$|ws$|@fastify\/busboy$)/,
  },
  gpu: { own: /^(gpu|core)\//, packages: /^(node:|zod$|execa$|undici$|ws$|node-llama-cpp$|@huggingface\/jinja$)/ },
  // What runs in the browser knows the rest only by the API.
  [consoleFolder.slice(0, -1)]: {
    own: /^server\/console\/app\//,
    packages:
      /^(react(-dom\/client)?$|wouter$|lucide-react$|@tanstack\/react-query$|openapi-fetch$|eventsource-parser$|@xyflow\/react$|@dagrejs\/dagre$|uplot$|@codemirror\/[\w-]+$|@lezer\/highlight$|yaml$)/,
  },
  cli: { own: /^(cli|server|core|gpu)\//, packages: /^(node:|zod$|commander$|consola(\/|$)|undici$|uqr$|yaml$)/ },
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

test('only cli/app.ts knows the server and the GPUs at once', () => {
  const both = sources.filter(path => {
    const imports = importsOf(path)
    return imports.some(to => to.startsWith('server/')) && imports.some(to => to.startsWith('gpu/'))
  })
  expect(both).toEqual(['cli/app.ts'])
})

/** The folders of core, lowest first, after its root files `.`: a folder may import those before it. */
const order = [
  '.',
  'schemas',
  'dag',
  'store',
  'accounts',
  'models',
  'files',
  'cpu',
  'media',
  'tasks',
  'admission',
  'jobs',
  'responses',
  'workflows',
  'batches',
  'webhooks',
]
const folderOf = (path: string) => {
  const [, folder, ...more] = path.split('/')
  return more.length === 0 ? '.' : folder!
}

/** The imports, of types too, between two folders of core. */
const edges = sources
  .filter(path => path.startsWith('core/'))
  .flatMap(path =>
    importsOf(path)
      .filter(to => to.startsWith('core/') && folderOf(to) !== folderOf(path))
      .map(to => ({ path, to, from: folderOf(path), into: folderOf(to) })),
  )

test('every folder of core has its place in the order', () => {
  const folders = sources.filter(path => path.startsWith('core/')).map(folderOf)
  expect([...new Set(folders)].filter(folder => !order.includes(folder))).toEqual([])
})

test('inside core, lower folders never import higher ones', () => {
  const wrong = edges
    .filter(({ from, into }) => order.indexOf(into) > order.indexOf(from))
    .map(({ path, to }) => `${path} imports ${to}`)
  expect(wrong).toEqual([])
})

test('no two folders of core import each other', () => {
  const pairs = new Set(edges.map(({ from, into }) => `${from} imports ${into}`))
  const mutual = [...pairs].filter(pair => pairs.has(pair.split(' imports ').toReversed().join(' imports ')))
  expect(mutual).toEqual([])
})

test('no file and no folder is a drawer', () => {
  const drawer = /^(utils?|helpers?|common|misc|shared|lib|types|interfaces|services|managers|controllers)(\.[a-z]+)*$/
  expect(files.filter(path => path.split('/').some(part => drawer.test(part)))).toEqual([])
})

/** Longer because they hold one concept. */
const longFiles: Record<string, string> = {
  'cli/app.ts': 'the composition root: it names every part once',
  'cli/program.ts': 'the table of the commands',
  'core/store/sqlite/assemble.ts': 'the store: one line for each of its methods',
  'core/store/store.ts': 'the seam of the store: one contract',
  'core/store/sqlite/migrations/001-initial-schema.ts': 'one migration, which is never edited',
  'gpu/residency.ts': 'one state machine with one writer: parts of it would share all of its state',
}
test('no source file is past 300 lines', () => {
  const long = sources.filter(path => read(path).split('\n').length > 301)
  expect(long.filter(path => !longFiles[path])).toEqual([])
  expect(Object.keys(longFiles).filter(path => !long.includes(path))).toEqual([])
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

test('the environment is read in one place', () => {
  // The launchers of the program itself ask before any configuration exists. Samples are code that people run.
  const allowed =
    /^(server\/console\/app\/pages\/playground\/samples|core\/config|core\/assets|core\/extract\w*|cli\/main|cli\/terminal|bin\/.*)\.ts$/
  expect(
    sources.filter(
      path => /process\.env\b/.test(read(path)) && !allowed.test(path) && !path.startsWith('core/assets/'),
    ),
  ).toEqual([])
})

test('only the entry ends the process', () => {
  expect(
    sources.filter(path => /process\.exit\(/.test(read(path)) && path !== 'cli/main.ts' && !path.startsWith('bin/')),
  ).toEqual([])
})

test('the states of jobs, executions and nodes are the same words in the code and in the schema of the store', () => {
  const schema = files
    .filter(path => path.startsWith('core/store/sqlite/migrations/'))
    .map(read)
    .join('\n')
  for (const status of [...jobStatuses, ...executionStatuses]) expect(schema).toContain(`'${status}'`)
  // That a node runs is told by its job.
  for (const status of nodeStatuses.filter(one => one !== 'running')) expect(schema).toContain(`'${status}'`)
})

const readmes = files.filter(path => /(^|\/)README\.md$/.test(path))
const guides = [...readmes, 'CONTRIBUTING.md']
const quoted = (path: string) => [...read(path).matchAll(/`([^`\n]+)`/g)].map(([, text]) => text!)

test.each(guides)('every path that %s names exists', guide => {
  const paths = quoted(guide).filter(text => /^(bin|cli|server|core|gpu|test)\/[\w./-]*$/.test(text))
  // Elsewhere a file may stand without its folder.
  const names = quoted(guide).filter(text => /^[\w.-]+\.ts$/.test(text))
  expect([
    ...paths.filter(path => !existsSync(path)),
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
/** Ids are defined in the first; records, presets, and engines, which do the tasks, are the others. */
const knowsTasks = /^(core\/schemas\/task\.ts$|core\/tasks\/|gpu\/presets\/|gpu\/engines\/)/

test.each([
  ["if (task === 'std/audio-speech')", true],
  ["'std/score' !== task", true],
  ["switch (task) { case 'std/rerank': }", true],
  ["model.tasks.includes('std/embeddings')", true],
  ["task.startsWith('slug/')", true],
  ["const table = { 'std/rerank': 1 }", false],
  ["answer: call => infer('std/rerank', call)", false],
])('%s: a branch on a task is %s', (code, isBranch) => expect(taskBranch.test(code)).toBe(isBranch))

test('no code asks which task it has: it reads the record', () => {
  const files = sources.filter(path => !knowsTasks.test(path) && !/^\s*route\(\{$/m.test(read(path)))
  expect(files.filter(path => taskBranch.test(read(path)))).toEqual([])
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
  expect(read('server/call.ts')).not.toMatch(/^\s+(readonly\s+)?#?owners\b|\bthis\.#?owners\b/m)
  // The server assembles all owners, and the table of routes passes them on.
  const takeAll = ['server/routes.ts', 'server/server.ts']
  expect(files.filter(path => /:\s*(Readonly<)?Owners\b(?!\[)/.test(read(path))).sort()).toEqual(takeAll)
})

test('no handler uses the store', () => {
  expect(read('server/owners.ts')).not.toMatch(/^\s+store\b/m)
  // Idempotency records are the server's own; metrics count what the store has done.
  const allowed = ['server/idempotency.ts', 'server/metrics.ts', 'server/server.ts']
  const named = sources.filter(path => path.startsWith('server/') && /^import type \{[^}]*\bStore\b/m.test(read(path)))
  expect(named.sort()).toEqual(allowed)
})
