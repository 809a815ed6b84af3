import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAccounts, type TokenOptions } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { openLimiter } from '../../core/accounts/limiter.ts'
import { openPlans } from '../../core/accounts/plans.ts'
import { openTokenLimiter } from '../../core/accounts/token-limiter.ts'
import { openAdmission } from '../../core/admission/admission.ts'
import { openBodyMemory } from '../../core/admission/body-memory.ts'
import { openSpend } from '../../core/admission/spend.ts'
import { openLog } from '../../core/log.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { openRegistry } from '../../core/models/registry.ts'
import { openSqliteStore } from '../../core/store/sqlite/store.ts'
import { scopes, weekdays } from '../../core/store/store.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import { rateHeaders } from '../../server/http/access/rate-headers.ts'

/**
 * Main-thread time of what happens before a chat may begin: authenticate, check and count every limit, make the headers,
 * admit, and end. Without limits, with all of them, and with all of them for a token that was not cached. Prints one line.
 * Run: `npx node test/bench/admission.ts`.
 */
const rounds = 7
const perRound = 50_000
/** More than `openAccounts` caches, so that each is verified again. */
const uncachedTokens = 6_000
const barUs = 40

const dataDir = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const log = openLog('error')
const store = await openSqliteStore({
  dataDir,
  log,
  minFreeBytes: 0,
  ballastBytes: 0,
  onFatal: failure => log.error(failure.message),
})
const plans = openPlans({ configured: {}, log })
const accounts = openAccounts({ store, keys: openStoredKeys(dataDir), plans, log })
const limiter = openLimiter()
const tokenLimiter = openTokenLimiter()
const registry = openRegistry({ models: [], toys: true, defaults: defaultModels, traits: traitsOf })
const admission = openAdmission({
  registry,
  tokenLimiter,
  spend: await openSpend({ store, plans, currency: 'USD', log }),
  localOnlyOf: () => undefined,
  bodies: openBodyMemory(1 << 30),
  room: { records() {}, queue() {}, machine() {} },
})
const modelId = registry.all().find(({ tasks }) => tasks.includes('std/chat-completion'))!.id
const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

const many = 1_000_000_000
const ofToken: Partial<TokenOptions> = {
  models: ['other/*', '*'],
  limits: {
    requestsPerMinute: many,
    jobsPerMinute: many,
    tokensPerMinute: many,
    concurrentRequests: many,
    allowedHours: { timezone: 'Europe/Berlin', ranges: [{ days: [...weekdays], from: '00:00', to: '24:00' }] },
  },
}

async function makeTokens(name: string, isLimited: boolean, count: number): Promise<string[]> {
  const limit = isLimited ? many : 0
  const { id } = await accounts.createOrganization({
    name,
    requestsPerMinute: limit,
    jobsPerMinute: limit,
    concurrentRequests: limit,
    pendingJobs: limit,
    storedBytes: limit,
    uploadsPerDay: limit,
  })
  const issue = () =>
    accounts.issue({
      organizationId: id,
      name: 'bench',
      scopes: [...scopes],
      expiresAt: null,
      ...(isLimited ? ofToken : {}),
    })
  return (await Promise.all(Array.from({ length: count }, issue))).map(({ secret }) => secret)
}

/** One request, as `server/http/run-route.ts` and a handler admit it. A hold of spending is taken by `admit` as well. */
function request(secret: string): number {
  const caller = accounts.authenticate(secret)
  const entry = limiter.enter(caller, 'jobs')
  if (entry.refused) throw entry.refused
  const headers = rateHeaders('jobs', caller, entry, tokenLimiter.look(caller))
  admission.admit(caller, { kind: 'call', task: 'std/chat-completion', modelId })
  tokenLimiter.used(caller.tokenId, 1)
  entry.leave()
  return headers.length
}

/** Processor time of this thread in microseconds a request, which does not depend on what else the machine does. */
function measure(secrets: readonly string[], requests: number): number {
  const before = process.threadCpuUsage()
  for (let at = 0; at < requests; at++) request(secrets[at % secrets.length]!)
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / requests
}

const free = await makeTokens('free', false, 1)
const limited = await makeTokens('limited', true, 1)
const uncached = await makeTokens('uncached', true, uncachedTokens)
const times = { free: [] as number[], limited: [] as number[], uncached: [] as number[] }
for (let round = -1; round < rounds; round++) {
  const one = {
    free: measure(free, perRound),
    limited: measure(limited, perRound),
    uncached: measure(uncached, uncachedTokens),
  }
  // The first round warms up.
  if (round >= 0) for (const which of ['free', 'limited', 'uncached'] as const) times[which].push(one[which])
}
const [none, all, cold] = [median(times.free), median(times.limited), median(times.uncached)]
process.stdout.write(
  `admission of a chat: ${none.toFixed(1)} µs without limits, ${all.toFixed(1)} µs with all of them, ${cold.toFixed(1)} µs with a token that is not cached (bar ${barUs} µs)\n`,
)
await store.close()
rmSync(dataDir, { recursive: true, force: true })
if (cold > barUs) process.exitCode = 1
