import { z } from 'zod'
import { Duration } from '../quantities.ts'
import { engineFacts } from './engine-facts.ts'
import { ImageName, KubernetesPool } from './kubernetes-pool.ts'
import { cardMemory, kindOf, limitFields } from './pool-fields.ts'

/** The pool of this machine: always there, and not in `pools`. */
export const localPool = 'local'

const PoolName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be a name such as lab')
  .refine(name => name !== localPool, "'local' is this machine: give the pool another name")

/** The other keys of the file in an example. */
const slurm = { pools: { team: { kind: 'slurm', card_memory: '80GiB' } } }
const ssh = { pools: { team: { kind: 'ssh', host: 'user@box' } } }

/** Words that Slurm takes as one option: no spaces, no quotes. */
const SlurmWord = z.string().regex(/^[\w.,:;&|*/@+=()[\]-]{1,200}$/, 'must be one word, without spaces and quotes')

/** A pool whose engines are jobs of a Slurm cluster. */
const SlurmPool = z.strictObject({
  kind: kindOf('slurm', slurm),
  partition: SlurmWord.optional().meta({
    description: '`slurm` only: partition in which the jobs run, or several with commas.',
    example: 'gpu',
    with: slurm,
    absent: 'the default partition of the cluster',
  }),
  account: SlurmWord.optional().meta({
    description: '`slurm` only: account to which the jobs are charged.',
    example: 'vision',
    with: slurm,
    absent: 'the default account of the user',
  }),
  qos: SlurmWord.optional().meta({
    description: '`slurm` only: quality of service of the jobs.',
    example: 'interactive',
    with: slurm,
    absent: 'the default of the account',
  }),
  constraint: SlurmWord.optional().meta({
    description: '`slurm` only: features that a node must have.',
    example: 'h100|a100',
    with: slurm,
    absent: 'none',
  }),
  gres: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]*(:[A-Za-z0-9_.-]+)?$/, 'must be a name such as gpu, or with a type: gpu:a100')
    .default('gpu')
    .meta({
      description: '`slurm` only: generic resource that stands for one GPU, perhaps with a type.',
      example: 'gpu:a100',
      with: slurm,
    }),
  time_limit: Duration.optional().meta({
    description: '`slurm` only: time after which a job ends. A model may have another for this pool.',
    example: '8h',
    with: slurm,
    absent: 'that of the partition',
  }),
  extra: z
    .array(z.string().regex(/^--[a-z][^\0\n]*$/, 'must be an option of sbatch such as --exclude=node7'))
    .max(50)
    .default([])
    .meta({
      description: '`slurm` only: further options of sbatch, unchanged.',
      example: ['--exclude=node7'],
      with: slurm,
    }),
  card_memory: cardMemory(slurm),
  executable: z
    .string()
    .regex(/^[^\0\n]+$/)
    .optional()
    .meta({
      description: '`slurm` only: path of infer on the nodes, for engines that are part of it.',
      example: '/opt/infer/bin/infer',
      with: slurm,
      absent: 'the path of this executable, which the nodes must have too',
    }),
  model_cache: z
    .string()
    .regex(/^\/[^\0\n]*$/, 'must be an absolute path')
    .optional()
    .meta({
      description:
        '`slurm` only: folder on the nodes for models of a hub. A job downloads there what neither this folder nor a shared one has, before its engine starts: see `infer model fetch`. The nodes need infer: see `executable`.',
      example: '/scratch/models',
      with: slurm,
      absent: 'nodes download nothing',
    }),
  ...limitFields(slurm),
})
export type SlurmPool = z.output<typeof SlurmPool>

/** A pool of one machine that is reached by ssh. */
const SshPool = z.strictObject({
  kind: kindOf('ssh', ssh),
  host: z
    .string()
    .regex(/^(?!-)([A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'must be a host, or user@host')
    .meta({
      description:
        '`ssh` only: the machine, as the command `ssh` takes it: a host name or an entry of `~/.ssh/config`.',
      example: 'user@box',
      with: ssh,
    }),
  port: z.int().min(1).max(65_535).optional().meta({
    description: '`ssh` only: port of its ssh server.',
    unit: 'port number',
    example: 2222,
    with: ssh,
    absent: 'as the configuration of ssh says, else 22',
  }),
  identity_file: z
    .string()
    .regex(/^(\/|~\/)[^\0\n]*$/, 'must be an absolute path, or begin with ~/')
    .optional()
    .meta({
      description:
        '`ssh` only: private key by which the machine is entered. It must need no passphrase, or be in an agent.',
      example: '~/.ssh/id_ed25519',
      with: ssh,
      absent: 'as the configuration of ssh says',
    }),
  ...limitFields(ssh),
})
export type SshPool = z.output<typeof SshPool>
export type { KubernetesPool } from './kubernetes-pool.ts'

/** A pool of machines besides this one. */
export const PoolSettings = z
  .discriminatedUnion('kind', [SlurmPool, KubernetesPool, SshPool], {
    error: "must have a 'kind': slurm, kubernetes or ssh",
  })
  .refine(({ cost_per_hour, monthly_cost_limit }) => monthly_cost_limit === undefined || Boolean(cost_per_hour), {
    path: ['monthly_cost_limit'],
    error: "needs 'cost_per_hour' of the pool, above 0",
  })
  .meta({ id: 'Pool' })
export type PoolSettings = z.output<typeof PoolSettings>

/** The key `pools` of infer.yaml. */
export const Pools = z
  .record(PoolName, PoolSettings)
  .nullish()
  .transform(pools => pools ?? {})
  .meta({
    description:
      'Machines besides this one on which engines may run, by name. `slurm`: a cluster, of which each engine is a job. `kubernetes`: a cluster, of which each engine is a pod. `ssh`: one machine. A model names those that it may use in `pools`.',
    example: {
      lab: { kind: 'slurm', partition: 'gpu', card_memory: '80GiB' },
      box2: { kind: 'ssh', host: 'user@box' },
    },
    absent: 'none: engines run on this machine',
  })
export type Pools = z.output<typeof Pools>

/** The other keys of the file in an example of a model with pools. */
const withPools = {
  pools: { lab: { kind: 'slurm', card_memory: '80GiB' } },
  models: [
    {
      id: 'llama-70b',
      engine: 'vllm',
      source: 'meta-llama/Llama-3.3-70B-Instruct',
      pools: ['local', { pool: 'lab', max_engines: 2, max_cards: 8, time_limit: '4h' }],
    },
  ],
}

/** A pool that a model may use, with limits of its own. */
const ModelPool = z.union([
  z.string().min(1),
  z.strictObject({
    pool: z.string().min(1).meta({ description: 'Name of the pool.', example: 'lab' }),
    max_engines: z.int().min(1).max(100_000).optional().meta({
      description: 'Engines of the model that may run there at a time.',
      unit: 'engines',
      example: 2,
      absent: 'as `replicas` says',
    }),
    max_cards: z.int().min(1).max(100_000).optional().meta({
      description: 'GPUs that engines of the model may use there together.',
      unit: 'GPUs',
      example: 8,
      absent: 'as the pool allows',
    }),
    time_limit: Duration.optional().meta({
      description: 'Time after which an engine of the model ends there. For pools of Slurm.',
      example: '4h',
      absent: 'that of the pool',
    }),
    image: ImageName.optional().meta({
      description: 'Image of the engine there. For pools of Kubernetes.',
      example: 'vllm/vllm-openai:v0.32.0',
      absent: 'that of the pool for the engine',
    }),
  }),
])

/** The key `pools` of a model. */
export const ModelPools = z
  .array(ModelPool)
  .min(1)
  .max(64)
  .optional()
  .meta({
    description:
      'Pools in which engines of the model may run, in this order: `local` is this machine, others are named in `pools` of the file. The first with free memory is used, else the first in which idle engines can make room. Other pools than `local` may have limits for the model: `{ pool: lab, max_engines: 2, max_cards: 8, time_limit: 4h }`.',
    example: ['local', { pool: 'lab', max_engines: 2 }],
    with: withPools,
    absent: 'only this machine, `[local]`',
  })

/** A pool that a model may use. */
export interface PoolUse {
  pool: string
  maxEngines?: number | undefined
  maxCards?: number | undefined
  /** Milliseconds. */
  timeLimit?: number | undefined
  image?: string | undefined
}

/** The pools that a model may use, in order. */
export const poolsOf = ({ pools }: { pools?: z.output<typeof ModelPools> }): readonly PoolUse[] =>
  pools === undefined
    ? onlyLocal
    : pools.map(one =>
        typeof one === 'string'
          ? { pool: one }
          : {
              pool: one.pool,
              maxEngines: one.max_engines,
              maxCards: one.max_cards,
              timeLimit: one.time_limit,
              image: one.image,
            },
      )

const onlyLocal: readonly PoolUse[] = [{ pool: localPool }]

interface PooledModel {
  id: string
  engine: string
  devices: unknown
  pools?: z.output<typeof ModelPools>
}

/** What is wrong with the pools of a model, and at which position of its list; undefined if nothing is. */
export function modelPoolsFault(model: PooledModel, pools: Pools): { at: number; message: string } | undefined {
  if (model.pools === undefined) return undefined
  const names = new Set<string>()
  for (const [at, { pool, timeLimit, maxEngines, maxCards, image }] of poolsOf(model).entries()) {
    const fault = (message: string) => ({ at, message: `Model '${model.id}': ${message}` })
    if (names.has(pool)) return fault(`the pool '${pool}' is listed twice.`)
    names.add(pool)
    if (engineFacts(model.engine).isElsewhere)
      return fault(`infer starts no engine for '${model.engine}', so it has no pools: remove 'pools'.`)
    if (pool === localPool) {
      if ([timeLimit, maxEngines, maxCards, image].every(one => one === undefined)) continue
      return fault("'local' has no limits here: use 'replicas' and 'devices'.")
    }
    const settings = Object.hasOwn(pools, pool) ? pools[pool] : undefined
    if (!settings)
      return fault(
        `there is no pool '${pool}'. Add it to 'pools', or use ${[localPool, ...Object.keys(pools)].join(', ')}.`,
      )
    if (timeLimit !== undefined && settings.kind !== 'slurm')
      return fault(`the pool '${pool}' has no time limit: only pools of Slurm do.`)
    if (image !== undefined && settings.kind !== 'kubernetes')
      return fault(`engines in the pool '${pool}' have no image: only those of Kubernetes do.`)
    if (Array.isArray(model.devices))
      return fault(`'devices' names GPUs of this machine, so it cannot run in '${pool}'. Write a number of GPUs.`)
  }
  return undefined
}

/** The state of a pool. */
export interface PoolSnapshot {
  name: string
  kind: PoolSettings['kind']
  /** GPUs that it has, and that engines of this server use. */
  cards: number
  usedCards: number
  engines: number
  maxCards: number | null
  maxEngines: number | null
  /** Of one GPU, in the currency of the prices. */
  costPerHour: number | null
  /** GPU hours of this calendar month, and their cost. */
  usedCardHours: number
  usedCost: number
  monthlyCardHoursLimit: number | null
  monthlyCostLimit: number | null
  /** Which limit of the month is reached and until when, as a sentence; null if none is. */
  limitReached: string | null
  /** Why it is not known what it has, as a sentence; null if it is. */
  unknown: string | null
}
