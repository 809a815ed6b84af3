import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import type { Caller } from '../../core/accounts/accounts.ts'
import { openLimiter, openWrongTokenLimiter } from '../../core/accounts/limiter.ts'
import { openPlans } from '../../core/accounts/plans.ts'
import { openTokenLimiter } from '../../core/accounts/token-limiter.ts'
import { openUsageReports } from '../../core/accounts/usage-report.ts'
import { openSpend } from '../../core/admission/spend.ts'
import { readBodyValue } from '../../core/cpu/body-work.ts'
import { isId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { readConfig } from '../../core/models/config.ts'
import { type Actor, scopes } from '../../core/store/store.ts'
import { SwapSet } from '../../core/swap-set.ts'
import { webhookRules } from '../../core/webhooks/endpoint-rules.ts'
import { openEndpoints } from '../../core/webhooks/endpoints.ts'
import { openMessages } from '../../core/webhooks/webhooks.ts'
import { answerFailure, dispatch, endCall, type HttpEvent } from '../../server/http/dispatch.ts'
import { openHttpApp } from '../../server/http/http-app.ts'
import type { Owners } from '../../server/http/request/owners.ts'
import { openStreamLimits } from '../../server/http/streams/stream-limits.ts'
import { auditRoutes } from '../../server/surfaces/native/audit.ts'
import { memberRoutes } from '../../server/surfaces/native/members.ts'
import { organizationRoutes } from '../../server/surfaces/native/organizations.ts'
import { tokenRoutes } from '../../server/surfaces/native/tokens.ts'
import { usageRoutes } from '../../server/surfaces/native/usage.ts'
import { webhookDeliveryRoutes } from '../../server/surfaces/native/webhook-deliveries.ts'
import { webhookSecretRoutes } from '../../server/surfaces/native/webhook-secrets.ts'
import { webhookRoutes } from '../../server/surfaces/native/webhooks.ts'
import { type Client, clientOf } from '../client/client.ts'
import { type InferInstallation, openInstallation } from './installation.ts'

/**
 * Answers the routes of organizations, users, tokens, webhooks and usage in this process, from the data directory, with
 * or without a running server. No socket is opened: a connection is a pair of streams. The caller is the user of the
 * operating system, who owns the machine; a token of the client is the id of the organization that it acts for.
 */
export async function openInProcess(dataDir: string): Promise<{ client: Client; close: () => Promise<void> }> {
  const installation = await openInstallation(dataDir)
  try {
    const { owners, close } = await openOwners(dataDir, installation)
    const options = { owners, calls: new SwapSet<NonNullable<HttpEvent['call']>>() }
    const app = openHttpApp<HttpEvent>({
      routes: [
        ...organizationRoutes(owners),
        ...memberRoutes(owners),
        ...tokenRoutes(owners),
        ...webhookRoutes(owners),
        ...webhookDeliveryRoutes(owners),
        ...webhookSecretRoutes(owners),
        ...usageRoutes(owners),
        ...auditRoutes(owners),
      ],
      begin: (req, res) => ({ req, res, params: {}, call: undefined }),
      handle: (route, event) => dispatch(route, event, options),
      explain: () => undefined,
      onError: (thrown, event) => answerFailure(thrown, event, { log: owners.log, errorsBelow: () => undefined }),
      end: event => endCall(event, options),
    })
    const server = createServer((req, res) => app.answer(req, res))
    const connect = () => {
      const [ours, theirs] = duplexPair()
      server.emit('connection', theirs)
      return ours
    }
    const place = { url: 'http://localhost', token: anyOrganization, isRemote: false, connect }
    return { client: clientOf(place, dataDir), close }
  } catch (thrown) {
    await installation.close()
    throw thrown
  }
}

const isOrganizationId = (name: string): boolean => name.startsWith('org_') && isId(name)

/** Stands for a token where the route names the organization. */
const anyOrganization = 'none'

/** The user of the operating system as a caller: no limit and no missing right. */
const callerOf = (organizationId: string, actor: Actor): Caller => ({
  tokenId: '',
  organizationId,
  actor,
  scopes,
  limits: {
    requestsPerMinute: 0,
    jobsPerMinute: 0,
    tokensPerMinute: 0,
    concurrentRequests: 0,
    pendingJobs: 0,
    storedBytes: 0,
    uploadsPerDay: 0,
    monthlySpendLimit: null,
  },
  token: {
    id: '',
    organizationId,
    // The organization that owns the machine.
    organizationName: 'default',
    organizationStatus: 'active',
    name: 'command line',
    scopes: [...scopes],
    models: null,
    limits: {
      requestsPerMinute: null,
      jobsPerMinute: null,
      tokensPerMinute: null,
      concurrentRequests: null,
      monthlySpendLimit: null,
      allowedHours: null,
    },
    userId: null,
    originId: '',
    status: 'active',
  } as unknown as Caller['token'],
})

/** The owners that these routes use. What only a running server has, such as its running requests, is empty. */
async function openOwners(dataDir: string, { accounts, organizations, store, keys, actor, close }: InferInstallation) {
  const log = openLog('error')
  const config = readConfig(join(dataDir, 'infer.yaml'), false)
  const plans = openPlans({ configured: config.plans, log })
  const endpoints = openEndpoints({ store, key: keys.webhooks, rules: webhookRules(config.webhooks) })
  const messages = openMessages({ keys, config: config.webhooks })
  const owners = {
    config,
    log,
    plans,
    store,
    accounts: { ...accounts, find: () => undefined, authenticate: (token = '') => callerOf(token, actor) },
    organizations: {
      ...organizations,
      // Without a name, an id is the name.
      create: (...[options, by]: Parameters<typeof organizations.create>) =>
        organizations.create(isOrganizationId(options.name) ? { id: options.name, ...options } : options, by),
    },
    spend: await openSpend({ store, plans, currency: config.currency, log }),
    usage: openUsageReports({ store, currency: config.currency }),
    webhooks: {
      ...endpoints,
      create: (...[options, by]: Parameters<typeof endpoints.create>) =>
        endpoints.create({ ...options, origin: config.public_url ?? null }, by),
      test: (...message: Parameters<typeof messages.test>) => messages.test(...message),
    },
    cpu: { readBody: readBodyValue },
    jobs: { calls: { cancelAll: () => 0, runningOf: () => 0 } },
    files: { sweep: () => Promise.resolve() },
    metrics: { answered: () => {} },
    // The reader is this process.
    streams: { sendLarge: (res: ServerResponse, bytes: Uint8Array) => void res.end(bytes) },
    limiter: openLimiter(),
    tokenLimiter: openTokenLimiter(),
    wrongTokens: openWrongTokenLimiter(config.limits.wrong_tokens_per_minute),
    streamLimits: openStreamLimits(config.limits),
  }
  return {
    owners: owners as unknown as Owners,
    close: async () => {
      await messages.close()
      await close()
    },
  }
}
