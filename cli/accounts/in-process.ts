import { createServer, type ServerResponse } from 'node:http'
import { duplexPair } from 'node:stream'
import type { Caller } from '../../core/accounts/accounts.ts'
import { openAddressLimiter, openLimiter } from '../../core/accounts/limiter.ts'
import { noLimits } from '../../core/accounts/plans.ts'
import { spendReading } from '../../core/accounts/spend-view.ts'
import { openTokenLimiter } from '../../core/accounts/token-limiter.ts'
import { openUsageReports } from '../../core/accounts/usage-report.ts'
import { readBodyValue } from '../../core/cpu/body-work.ts'
import { isId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { Config } from '../../core/models/config.ts'
import { monthOf } from '../../core/month.ts'
import { type Actor, scopes } from '../../core/store/store.ts'
import { SwapSet } from '../../core/swap-set.ts'
import { openEndpoints, webhookRules } from '../../core/webhooks/endpoints.ts'
import { openMessages } from '../../core/webhooks/webhooks.ts'
import { openHttpApp } from '../../server/http/http-app.ts'
import type { Route } from '../../server/http/request/route.ts'
import { answerFailure, endExchange, type HttpEvent, runRoute } from '../../server/http/run-route.ts'
import { auditRoutes } from '../../server/surfaces/native/audit.ts'
import { memberRoutes } from '../../server/surfaces/native/members.ts'
import { organizationLimitRoutes, organizationRoutes } from '../../server/surfaces/native/organizations.ts'
import { tokenRoutes } from '../../server/surfaces/native/tokens.ts'
import { usageRoutes } from '../../server/surfaces/native/usage.ts'
import { webhookRoutes } from '../../server/surfaces/native/webhooks.ts'
import { workflowRoutes } from '../../server/surfaces/native/workflows.ts'
import { type Client, clientOf } from '../client/client.ts'
import { type Directory, type Installation, openDirectory, openInstallation } from './installation.ts'

interface InProcess {
  client: Client
  close: () => Promise<void>
}

/**
 * Answers the routes of organizations, users, tokens and webhooks in this process, from the data directory, with or
 * without a running server.
 */
export async function openInProcess(dataDir: string): Promise<InProcess> {
  const installation = await openInstallation(dataDir)
  const { owners, close } = accountOwners(installation)
  const routes = [
    ...organizationRoutes(owners),
    ...organizationLimitRoutes(owners),
    ...memberRoutes(owners),
    ...tokenRoutes(owners),
    ...webhookRoutes(owners),
    ...auditRoutes(owners),
  ]
  return { client: clientOfRoutes(routes, installation.actor, dataDir), close }
}

/** Answers the routes of usage and organizations in the same way, without the keys of the server. */
export async function openUsageInProcess(dataDir: string): Promise<InProcess> {
  const directory = await openDirectory(dataDir)
  try {
    const { config, plans } = directory.settings()
    const usage = openUsageReports({ store: directory.store, currency: config.currency })
    const owners = {
      ...organizationOwners(directory),
      plans,
      usage,
      spend: noSpend,
      idempotency: unused,
      // Only the list is used, for names.
      accounts: directory.store.tokens as unknown as TokenOwners['accounts'],
    }
    const routes = [
      ...organizationRoutes(owners),
      ...memberRoutes(owners),
      ...tokenRoutes(owners),
      ...usageRoutes(owners),
      ...workflowLists(directory),
    ]
    return { client: clientOfRoutes(routes, directory.actor, dataDir), close: directory.close }
  } catch (thrown) {
    await directory.close()
    throw thrown
  }
}

/**
 * Returns a client whose server is inside this process. No socket is opened: a connection is a pair of streams. The
 * caller is the user of the operating system, who owns the machine; a token of the client is the id of the organization
 * that it acts for.
 */
function clientOfRoutes(routes: readonly Route[], actor: Actor, dataDir: string): Client {
  let thrown: unknown
  const options = { owners: dispatchOwners(actor), exchanges: new SwapSet<NonNullable<HttpEvent['exchange']>>() }
  const app = openHttpApp<HttpEvent>({
    routes,
    begin: (req, res) => ({ req, res, params: {}, exchange: undefined }),
    handle: (route, event) => runRoute(route, event, options),
    explain: () => undefined,
    onError: (cause, event) => {
      thrown = cause
      answerFailure(cause, event, { log: silent, errorsBelow: () => undefined })
    },
    end: event => endExchange(event, options),
  })
  const server = createServer((req, res) => app.answer(req, res))
  const connect = () => {
    const [ours, theirs] = duplexPair()
    server.emit('connection', theirs)
    return ours
  }
  const inside = { connect, thrown: () => thrown }
  return clientOf({ url: 'http://localhost', token: anyOrganization, isRemote: false, inside }, dataDir)
}

/** The command reports what was thrown. */
const silent = openLog('error', () => {})

const isOrganizationId = (name: string): boolean => isId(name, 'org_')

/** Stands for a token where the route names the organization. */
const anyOrganization = 'none'

/** The user of the operating system as a caller: no limit and no missing right. */
const callerOf = (organizationId: string, actor: Actor): Caller => ({
  tokenId: '',
  organizationId,
  actor,
  scopes,
  limits: noLimits,
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
      localOnly: false,
    },
    userId: null,
    originId: '',
    parentLimits: [],
    status: 'active',
  } as unknown as Caller['token'],
})

/** Stands for an owner that none of these routes uses. */
const unused = undefined as never

/** The list of workflows, of which only the names are used. */
const workflowLists = ({ store: { workflows } }: Directory) =>
  workflowRoutes({ workflows, admission: unused, registry: unused } as unknown as WorkflowOwners).filter(
    ({ method, path }) => method === 'GET' && path === '/api/workflows',
  )
type WorkflowOwners = Parameters<typeof workflowRoutes>[0]

type DispatchOwners = Parameters<typeof runRoute>[2]['owners']

/** The owners for dispatching. No limit of infer.yaml holds here: it is for clients of the server. */
function dispatchOwners(actor: Actor): DispatchOwners {
  const config = Config.parse({})
  return {
    config,
    accounts: {
      find: () => undefined,
      authenticate: (token = '') => callerOf(token, actor),
    } as unknown as DispatchOwners['accounts'],
    cpu: { readBody: readBodyValue } as unknown as DispatchOwners['cpu'],
    metrics: { answered: () => {} } as unknown as DispatchOwners['metrics'],
    // The reader is this process.
    streams: {
      send: (res: ServerResponse, body: string | Uint8Array, encoding: BufferEncoding) => void res.end(body, encoding),
      sendLarge: (res: ServerResponse, bytes: Uint8Array) => void res.end(bytes),
    } satisfies Pick<DispatchOwners['streams'], 'send' | 'sendLarge'> as unknown as DispatchOwners['streams'],
    limiter: openLimiter(),
    tokenLimiter: openTokenLimiter(),
    wrongTokens: openAddressLimiter(config.limits.wrong_tokens_per_minute),
    access: unused,
    admission: unused,
    steady: unused,
    streamLimits: unused,
  }
}

type OrganizationOwners = Parameters<typeof organizationRoutes>[0]

/** What only a running server has, its running requests and its sweep of files, is empty. */
const organizationOwners = ({ organizations }: Directory): OrganizationOwners => ({
  organizations: {
    ...organizations,
    // Without a name, an id is the name.
    create: (...[options, by]: Parameters<typeof organizations.create>) =>
      organizations.create(isOrganizationId(options.name) ? { id: options.name, ...options } : options, by),
  },
  jobs: {
    calls: { known: () => undefined, cancelAll: () => 0, runningOf: () => 0 },
  } as unknown as OrganizationOwners['jobs'],
  files: { sweep: () => Promise.resolve() } as unknown as OrganizationOwners['files'],
})

type LimitOwners = Parameters<typeof organizationLimitRoutes>[0]
type TokenOwners = Parameters<typeof tokenRoutes>[0]
type WebhookOwners = Parameters<typeof webhookRoutes>[0]

/** The client leaves out what tokens have spent: all spending of the server would be read for it. */
const noSpend = {
  ofToken: ({ limits }) =>
    spendReading({ spent: 0, held: 0, limit: limits.monthlySpendLimit, period: monthOf(Date.now()) }),
} as TokenOwners['spend']

function accountOwners(installation: Installation) {
  const { accounts, close } = installation
  let webhooks: ReturnType<typeof openWebhooks> | undefined
  const owners: OrganizationOwners & LimitOwners & TokenOwners & WebhookOwners = {
    ...organizationOwners(installation),
    accounts,
    spend: noSpend,
    get plans() {
      return installation.settings().plans
    },
    // Opened when it is needed, because it reads infer.yaml.
    get webhooks() {
      return (webhooks ??= openWebhooks(installation)) as unknown as WebhookOwners['webhooks']
    },
    idempotency: unused,
  }
  return {
    owners,
    close: async () => {
      await webhooks?.close()
      await close()
    },
  }
}

function openWebhooks({ store, keys, settings }: Installation) {
  const { webhooks: config, public_url: origin = null } = settings().config
  const endpoints = openEndpoints({ store, key: keys.webhooks, rules: webhookRules(config) })
  const messages = openMessages({ keys, config })
  return {
    ...endpoints,
    create: (...[options, by]: Parameters<typeof endpoints.create>) => endpoints.create({ ...options, origin }, by),
    test: (...message: Parameters<typeof messages.test>) => messages.test(...message),
    close: () => messages.close(),
  }
}
