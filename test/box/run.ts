import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { say as print, until } from '../e2e/_home.ts'
import { type Actor, type Box, organizationNames } from './box.ts'
import { chatUser, codingAgent } from './callers.ts'
import { openCards } from './cards.ts'
import { openClient } from './client.ts'
import { faults } from './faults.ts'
import { figures } from './figures.ts'
import { lostWork } from './lost-work.ts'
import { modelEntries } from './models.ts'
import { createOrganization, type Organization, openServer } from './server.ts'
import { imageMaker, nightlyBatch, storyteller } from './submitters.ts'
import { tryVulkan } from './vulkan.ts'
import { watchWaits } from './waits.ts'

/**
 * The acceptance of the whole: a server with default settings on two fake cards, more models than fit, several users,
 * and faults on the way. Prints progress, then one page of figures; the exit code is 1 if a judgement failed.
 * Run: `npm run test:box`, with `-- --packed` for build/infer; `-- --keep` keeps the folder, with the log.
 */
const actors: readonly Actor[] = [codingAgent, chatUser, nightlyBatch, imageMaker, storyteller]

/** How long a fault, the last requests and the acknowledged work may each take. */
const limitMs = 75_000
/** How long the actors are alone at first. */
const calmMs = 10_000

const { values } = parseArgs({
  options: { packed: { type: 'boolean', default: false }, keep: { type: 'boolean', default: false } },
})

/** Resolves when the work has ended; with why it failed, or that it took too long. */
async function problemOf(name: string, work: Promise<void>): Promise<string[]> {
  const timer = new AbortController()
  const late = delay(limitMs, [`${name} has not ended within ${limitMs / 1_000} s`], { signal: timer.signal })
  late.catch(() => {})
  const failed = (cause: unknown) => [`${name}: ${(cause as Error).message}`]
  return Promise.race([work.then(() => [], failed), late]).finally(() => timer.abort())
}

/** Prints the page; returns whether all is well. */
async function run(): Promise<boolean> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'infer-box-'))
  opened.defer(() => {
    if (!values.keep) rmSync(folder, { recursive: true, force: true })
  })
  const began = performance.now()
  const now = () => performance.now() - began
  const say = (line: string) => print(`${(now() / 1_000).toFixed(1).padStart(6)} s  ${line}`)

  const cards = openCards(folder, { count: 2, mebibytes: 24_564, now })
  opened.defer(() => cards.close())
  const { packed } = values
  const variables = { PATH: `${cards.binaries}:${process.env.PATH ?? ''}` }
  const server = await openServer(folder, modelEntries(cards), { variables, packed })
  opened.defer(() => server.close())
  opened.defer(() => writeFileSync(join(folder, 'server.log'), server.log()))
  await server.start()
  say(`ready at ${server.url}, data in ${folder}`)

  const made: [string, Organization][] = []
  for (const name of organizationNames) made.push([name, await createOrganization(server, name)])
  const over = new AbortController()
  const box: Box = {
    server,
    cards,
    now,
    say,
    over: over.signal,
    calls: [],
    open: new Set(),
    acknowledged: [],
    faults: [],
    organizations: Object.fromEntries(made) as Box['organizations'],
  }
  const waits = watchWaits(box)
  say(`${actors.length} actors of ${organizationNames.length} organizations begin`)
  const running = actors.map(actor => ({ name: actor.name, work: actor.run(openClient(box, actor), box) }))
  const early = Promise.all(running.map(({ work }) => work)).catch(() => {})
  await Promise.race([delay(calmMs), early])

  const problems: string[] = []
  for (const disturb of faults) problems.push(...(await problemOf(disturb.name, disturb(box))))
  over.abort()
  say('the actors finish')
  for (const found of await Promise.all(running.map(({ name, work }) => problemOf(name, work)))) problems.push(...found)

  const lost = await lostWork(box, limitMs)
  await waits.stop()
  const before = server.processes().length
  await server.end('SIGTERM')
  const orphans = server.processes()
  await until('the memory of ended engines', () => cards.holders().length === 0, 5_000).catch(() => {})
  say(`the server has ended, and ${before - 1} other processes with it`)

  const database = server.checkDatabase()
  const vulkan = await tryVulkan(join(folder, 'vulkan'), { packed, say })
  const { lines, good } = figures({ box, waits, lost, orphans, problems, database, vulkan })
  print(['', ...lines].join('\n'))
  return good
}

if (values.packed && !existsSync('build/infer')) throw new Error('build/infer is missing. Run: npm run pack')
// An actor whose requests are never served would go on for ever.
process.exit((await run()) ? 0 : 1)
