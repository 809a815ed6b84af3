import type { Accounts } from '../../../core/accounts/accounts.ts'
import type { AddressLimiter, RequestLimiter } from '../../../core/accounts/limiter.ts'
import type { Organizations } from '../../../core/accounts/organizations.ts'
import type { Plans } from '../../../core/accounts/plans.ts'
import type { Sessions } from '../../../core/accounts/sessions.ts'
import type { TokenLimiter } from '../../../core/accounts/token-limiter.ts'
import type { UsageReports } from '../../../core/accounts/usage-report.ts'
import type { Admission } from '../../../core/admission/admission.ts'
import type { Spend } from '../../../core/admission/spend.ts'
import type { Batches } from '../../../core/batches/batches.ts'
import type { Conversations } from '../../../core/conversations/conversations.ts'
import type { Cpu } from '../../../core/cpu/cpu.ts'
import type { Files } from '../../../core/files/files.ts'
import type { Inspection } from '../../../core/inspection.ts'
import type { Jobs } from '../../../core/jobs/jobs.ts'
import type { PromptRewriting } from '../../../core/jobs/prompt-rewriting.ts'
import type { Journal } from '../../../core/journal.ts'
import type { Log } from '../../../core/log.ts'
import type { Media } from '../../../core/media/media.ts'
import type { Config } from '../../../core/models/config.ts'
import type { Engines } from '../../../core/models/engine-setup.ts'
import type { Fleet } from '../../../core/models/fleet.ts'
import type { GpuSetup } from '../../../core/models/gpu-setup.ts'
import type { ModelAdministration, ModelPull } from '../../../core/models/model-administration.ts'
import type { Peers } from '../../../core/models/peers/peers.ts'
import type { Registry } from '../../../core/models/registry.ts'
import type { Reload } from '../../../core/models/reload.ts'
import type { Responses } from '../../../core/responses/responses.ts'
import type { SteadyTime } from '../../../core/steady-time.ts'
import type { SwapSet } from '../../../core/swap-set.ts'
import type { Preparation } from '../../../core/tasks/preparation.ts'
import type { Conversion } from '../../../core/tasks/speech/conversion.ts'
import type { Webhooks } from '../../../core/webhooks/webhooks.ts'
import type { Executions } from '../../../core/workflows/executions.ts'
import type { ResultLookup } from '../../../core/workflows/result-lookup.ts'
import type { Waits } from '../../../core/workflows/waits.ts'
import type { Workflows } from '../../../core/workflows/workflows.ts'
import type { History } from '../../metrics/history.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Throughput } from '../../metrics/throughput.ts'
import type { Timings } from '../../metrics/timings.ts'
import type { AccessWatch } from '../access/access-watch.ts'
import type { ResumableStreams } from '../streams/resumable-streams.ts'
import type { StreamLimits } from '../streams/stream-limits.ts'
import type { Streams } from '../streams/streams.ts'
import type { ClientExchange } from './exchange.ts'
import type { IdempotencyRecords } from './idempotency-records.ts'

/**
 * The owners that handlers use. cli/server/app.ts opens them and passes them to the server. Each function declares those that
 * it needs: `Owners<'jobs' | 'files'>`. The store is not among them: handlers read through its owners.
 */
export type Owners<Name extends keyof AllOwners = keyof AllOwners> = Pick<AllOwners, Name>

interface AllOwners {
  config: Config
  accounts: Accounts
  /** Of the web console. */
  sessions: Sessions
  organizations: Organizations
  limiter: RequestLimiter
  tokenLimiter: TokenLimiter
  usage: UsageReports
  plans: Plans
  registry: Registry
  peers: Pick<Peers, 'snapshot'>
  reload: Pick<Reload, 'status'>
  /** Adds models to this machine and removes them. */
  models: ModelAdministration
  /** Downloads a model and offers it. */
  modelPull: ModelPull
  /** Installs what the built-in engine needs to use the GPUs. */
  gpuSetup: GpuSetup
  /** The engines of this machine, and their installation. */
  engineSetups: Engines
  fleet: Fleet
  jobs: Jobs
  responses: Responses
  /** Conversations that are kept for people. */
  conversations: Conversations
  rewriting: PromptRewriting
  executions: Executions
  workflows: Workflows
  /** Nodes that wait for a person, an event or a time. */
  waits: Waits
  batches: Batches
  webhooks: Webhooks
  cpu: Cpu & Preparation & ResultLookup
  conversion: Conversion
  media: Media
  files: Files
  metrics: Metrics
  streams: Streams
  throughput: Throughput
  /** What models did in the last hour. */
  history: History
  timings: Timings
  /** The clock for the expiry of idempotency keys. */
  steady: SteadyTime
  /** The newest lines of the server's own log. */
  journal: Journal
  admission: Admission
  spend: Spend
  /** Ends open responses whose token has lost its rights. Created by the server. */
  access: AccessWatch
  /** Limits the event streams of tokens and organizations. Created by the server. */
  streamLimits: StreamLimits
  /** Streams that outlive their connection. Created by the server. */
  resumable: ResumableStreams
  /** Slows down clients that guess tokens. Created by the server. */
  wrongTokens: AddressLimiter
  /** Limits the reads of links to conversations, which need no token. Created by the server. */
  linkReads: AddressLimiter
  /** Requests with an idempotency key. Created by the server. */
  idempotency: IdempotencyRecords
  /** The running requests. Created and filled by the server. */
  exchanges: Pick<SwapSet<ClientExchange>, 'size' | typeof Symbol.iterator>
  /** What is known about this installation. */
  inspection: Inspection
  log: Log
}
