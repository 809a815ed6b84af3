import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { PlanSettings } from '../accounts/plans.ts'
import { Limits, section } from '../config.ts'
import { Failure, invalidValue } from '../failure.ts'
import { listOf } from '../json.ts'
import { listenPattern } from '../listen-address.ts'
import { isNetwork } from '../network-address.ts'
import { Duration } from '../quantities.ts'
import { readYaml } from '../read-yaml.ts'
import { regionLabels } from '../schemas/region.ts'
import { adapterFault, adapterTasks, withAdapters } from './adapter.ts'
import { CachesSettings } from './caches-settings.ts'
import { graphFault } from './comfyui/graph-fault.ts'
import { faultOf, placeIn } from './config-fault.ts'
import { offeredModels } from './defaults.ts'
import { type DescribedSchema, standardSchema } from './described-schema.ts'
import { DeviceSetting } from './device-setting.ts'
import type { ModelCheck } from './engine-traits.ts'
import { gatewayProcessesHere } from './gateway-processes.ts'
import { HttpUrl } from './http-url.ts'
import { type Feature, Model } from './model.ts'
import { fallbackFault, lackedByProfile, nameFault, namesOf } from './model-names.ts'
import { loopbackTokenFault, OllamaSettings } from './ollama-settings.ts'
import { Peers, peerOfName } from './peers/settings.ts'
import { modelPoolsFault, Pools } from './pools.ts'
import { PromptRewriting, rewritingFault } from './prompt-rewriting.ts'
import { GpuSettings } from './quiet-hours.ts'
import { addSlugs, type SlugTable, slugFault } from './slugs.ts'
import { nodesFault } from './spanned-nodes.ts'

const NetworkText = z.string().refine(isNetwork, 'must be an IP address or a network such as 10.1.0.0/16')

const minute = 60_000
const hour = 3_600_000

/** The section `webhooks` of infer.yaml. */
const WebhooksConfig = section(
  'Where webhooks may be sent, and when they are sent again.',
  { allowed_addresses: ['10.1.0.0/16'] },
  {
    allowed_hosts: z
      .array(z.string())
      .optional()
      .meta({
        description: 'Hosts to which webhooks are sent, and to no others. `*.` at the start stands for any name below.',
        example: ['hooks.example.com', '*.example.org'],
        absent: 'every public host',
      }),
    allowed_addresses: z
      .array(NetworkText)
      .default([])
      .meta({
        description: 'Private addresses or networks (CIDR) to which webhooks may be sent too, on any port.',
        example: ['10.1.0.0/16', '127.0.0.1'],
      }),
    timeout: Duration.default(15_000).meta({
      description: 'Time in which the URL of a webhook must answer.',
      example: '30s',
    }),
    retry_delays: z
      .array(Duration)
      .max(20)
      .default([5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour])
      .meta({
        description:
          'Pauses between the attempts to deliver a webhook, each drawn within 20 %. After the last one it is dead: it is sent again only on request.',
        unit: 'milliseconds',
        example: ['5s', '1m', '10m'],
      }),
    parallel: z.int().min(1).max(1_000).default(64).meta({
      description: 'Maximum number of webhooks that are sent at a time.',
      unit: 'requests',
      example: 16,
    }),
    parallel_per_endpoint: z.int().min(1).max(100).default(8).meta({
      description: 'Maximum number of webhooks that are sent at a time to one endpoint or host.',
      unit: 'requests',
      example: 2,
    }),
    retention: Duration.default(7 * 24 * hour).meta({
      description: 'Time that a delivery is kept after its end, to be read or sent again.',
      example: '30d',
    }),
  },
)

const Host = z.string().regex(/^[A-Za-z0-9._-]+(?::\d{1,5})?$/, 'must be a host name, or name:port')
const Origin = z
  .string()
  .regex(
    /^(\*|[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\s/?#@*]+)$/,
    'An origin has a scheme, a host, perhaps a port, and no path: https://app.example.com. For all pages, *.',
  )

/**
 * infer.yaml. The metadata of the keys make the configuration reference: `description`, `example`, `unit`, `absent` (the
 * behaviour without a key that has no default), `with` (other keys of the model, or of the file, that the example needs).
 */
export const Config = z
  .strictObject({
    listen: z
      .string()
      .regex(listenPattern, 'must be host:port, such as 127.0.0.1:8787, with a port up to 65535')
      .default('127.0.0.1:8787')
      .meta({
        description:
          'Address to listen on, as host:port; 0.0.0.0 and [::] are every address of the machine. `infer serve --listen` overrides it.',
        example: '0.0.0.0:8787',
      }),
    gateway_processes: z.int().min(1).max(64).default(gatewayProcessesHere).meta({
      description:
        'Processes that accept connections. With more than 1 the first process keeps the store, the queue, the limits and the models, and this many others accept connections, decrypt TLS and answer requests for text while the caller is not near a limit; they pass on the rest. Linux only.',
      unit: 'processes',
      example: 4,
      absent:
        '1 up to 4 processor cores; above, one for each 4 cores after 2 for each NVIDIA card are taken away, from 1 to 8',
    }),
    public_url: HttpUrl.optional().meta({
      description:
        'Address by which clients reach the server, where a proxy or tunnel is in front of it. All addresses in answers begin with it, those of files too, and its host name is allowed.',
      example: 'https://ai.example.com',
      absent: 'none: addresses begin with the host of the request',
    }),
    allowed_hosts: z
      .array(Host)
      .default([])
      .meta({
        description:
          "Host names, besides localhost and IP addresses, for which the server answers, each alone or with a port (`gpu.lan:8443`). Others get 421 `invalid_host`. For fal's clients: under `fal.run`, `queue.fal.run`, `rest.fal.ai` and `v3.fal.media`, and under a pair `<name>` and `queue.<name>`, models are at the root of the host.",
        example: ['gpu.lan'],
      }),
    trusted_proxies: z
      .array(NetworkText)
      .default([])
      .meta({
        description:
          'Addresses or networks (CIDR) of proxies whose X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For are believed.',
        example: ['127.0.0.1', '10.0.0.0/8'],
      }),
    metrics: z.enum(['local', 'token']).default('local').meta({
      description:
        'Who reads /metrics without a token. `local`: direct connections from this machine. `token`: nobody; the scope `admin:read` is needed.',
      example: 'token',
    }),
    console: z.boolean().default(true).meta({
      description:
        'Whether the server has the web console: its pages at `/console`, and sessions of browsers. The API is not affected.',
      example: false,
    }),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, 'must be three capital letters, such as EUR')
      .default('USD')
      .meta({
        description: 'Currency of all prices, costs and spend limits, by its ISO 4217 code. Nothing is converted.',
        example: 'EUR',
      }),
    batch_price_factor: z.number().min(0).max(1).default(1).meta({
      description: 'What the lines of batches cost, as a part of the price of their model: 0.5 is half the price.',
      unit: 'part of the price',
      example: 0.5,
    }),
    cors: section(
      'Access for web pages of other origins, in browsers.',
      { origins: ['https://app.example.com'] },
      {
        origins: z
          .array(Origin)
          .default([])
          .meta({
            description:
              'Origins whose web pages may use the API with a token; `*` for all. Signed addresses of files are open to all pages without it.',
            example: ['https://app.example.com', 'http://localhost:5173'],
          }),
      },
    ),
    devices: z
      .array(DeviceSetting)
      .optional()
      .meta({
        description:
          'GPUs that infer may use, by number, id, UUID or name; `memory` limits what all engines together may use of one. An empty list leaves all of them to others. `CUDA_VISIBLE_DEVICES` of the server limits them too. Read at the start only.',
        unit: 'GPUs',
        example: [0, { device: 1, memory: '12GB' }],
        absent: 'all that `CUDA_VISIBLE_DEVICES` of the server allows',
      }),
    gpu: GpuSettings,
    pools: Pools,
    peers: Peers,
    region: z.enum(regionLabels).optional().meta({
      description:
        'Region in which this machine is. Workflows, requests and organizations that are restricted to a region use only models of this region. A remote model has a `region` of its own.',
      example: 'EU',
      absent: 'none: work that asks for a region is refused',
    }),
    prompt_rewriting: PromptRewriting,
    models: z
      .array(Model)
      .nullish()
      .transform(models => models ?? [])
      .meta({
        description:
          'Models that are offered. Only `models`, `toys`, `plans`, `gpu`, `pools`, `peers` and `caches` are read again while the server runs.',
        example: [{ id: 'qwen3-8b', source: '/models/qwen3-8b-q4_k_m.gguf' }],
        absent: 'the models that ship with infer',
      }),
    toys: z.boolean().optional().meta({
      description: 'Whether the toy models that ship with infer are offered beside `models`.',
      example: true,
      absent: 'only while `models` lists none',
    }),
    media: section(
      'How images, audio and videos are fetched that requests name by an address, and how they are decoded.',
      { allowed_hosts: ['images.example.com'] },
      {
        ffmpeg: z.string().optional().meta({
          description: 'Path of the ffmpeg program.',
          example: '/opt/ffmpeg/bin/ffmpeg',
          absent: 'the ffmpeg on the PATH',
        }),
        ffprobe: z.string().optional().meta({
          description: 'Path of the ffprobe program.',
          example: '/opt/ffmpeg/bin/ffprobe',
          absent: 'the ffprobe on the PATH',
        }),
        allowed_hosts: z
          .array(z.string())
          .optional()
          .meta({
            description:
              'Hosts from which media are fetched, and no others. `*.` at the start stands for any name below.',
            example: ['images.example.com', '*.cdn.example.com'],
            absent: 'every public host',
          }),
        allowed_addresses: z
          .array(NetworkText)
          .default([])
          .meta({
            description: 'Private addresses or networks (CIDR) from which media may be fetched too, on any port.',
            example: ['10.1.0.0/16'],
          }),
      },
    ),
    webhooks: WebhooksConfig,
    ollama: OllamaSettings,
    caches: CachesSettings,
    plans: z
      .record(z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a name such as team-large'), PlanSettings)
      .nullish()
      .transform(plans => plans ?? {})
      .meta({
        description:
          'Plans of organizations by name: limits and share of GPU time. `free`, `pro` and `enterprise` always exist; what is set here replaces their figures.',
        example: { team: { requests_per_minute: 1_200, jobs_per_minute: 200, concurrent_requests: 20, share: 3 } },
        absent: 'the plans that ship with infer',
      }),
    limits: Limits,
  })
  .meta({ id: 'Config', title: 'infer.yaml' })
/** `models` are those with an engine of their own; adapters are attached to theirs. */
export type Config = Omit<z.output<typeof Config>, 'models'> & { models: Model[] }

/** Thousands of models fit. A larger file is another one, by mistake. */
const maxConfigBytes = 2_000_000

/** Reads the text of infer.yaml. Throws if it cannot be read or is too large. */
export function configText(path: string): string {
  const { size } = statSync(path)
  if (size > maxConfigBytes)
    throw new Error(`it has ${Math.ceil(size / 1e6)} MB, and at most ${maxConfigBytes / 1e6} MB are read`)
  return readFileSync(path, 'utf8')
}

/**
 * Reads infer.yaml. A missing file means the defaults if `required` is false.
 * Throws Failure `invalid_value` whose message names the file, the line and the error.
 */
export function readConfig(path: string, required: boolean, check?: ModelCheck): Config {
  let text: string
  try {
    text = configText(path)
  } catch (cause) {
    if (!required && (cause as NodeJS.ErrnoException).code === 'ENOENT') return Config.parse({})
    const why = (cause as Error).message.replace(/^E[A-Z]+: ([^,]*),.*$/s, '$1')
    throw invalidValue(`The configuration ${path} cannot be read: ${why}.`, { cause })
  }
  return parseConfig(text, path, check)
}

/**
 * Parses the text of infer.yaml; `path` is used only in messages, which begin with `path:line:column`. `check` throws a
 * Failure for an enabled model that is invalid for reasons that the schema cannot express.
 */
export function parseConfig(text: string, path: string, check?: ModelCheck): Config {
  const { document, value: read } = readYaml(text, path)
  const value = read ?? {}
  const parsed = Config.safeParse(value)
  if (!parsed.success) throw faultOf(parsed.error, { value, document, text, path, schema: configSchema() })
  const entries: readonly Model[] = parsed.data.models
  const written: readonly unknown[] = listOf((value as { models?: unknown }).models)
  const invalid = (at: number, field: string | (string | number)[], message: string) =>
    invalidValue(`${placeIn(document, text, path, ['models', at, ...[field].flat()])}: ${message}`)
  const ids = new Set<string>()
  const named = new Map(entries.map(({ id }) => [id, id]))
  const byId = new Map(entries.map(model => [model.id, model]))
  const models = withAdapters(entries, written)
  const config: Config = { ...parsed.data, models }
  const offered = new Map(offeredModels(config).map(model => [model.id, model]))
  const slugs: SlugTable<Model> = new Map()
  for (const [at, entry] of entries.entries()) {
    if (ids.has(entry.id)) throw invalid(at, 'id', `the model id '${entry.id}' is used twice; ids must differ.`)
    ids.add(entry.id)
    const attached = adapterFault(entry, written[at], byId)
    if (attached) throw invalid(at, attached.key, attached.message)
    const { tasks } = entry.adapter ? byId.get(entry.adapter.of)! : entry
    const name = nameFault({ ...entry, tasks }, named)
    if (name) throw invalid(at, name.key, name.message)
    const ofPeer = namesOf(entry).find(one => peerOfName(one, config.peers))
    if (ofPeer) throw invalid(at, 'id', ofPeerText(ofPeer, peerOfName(ofPeer, config.peers)!))
    for (const one of namesOf(entry)) named.set(one, entry.id)
    const own = { ...entry, tasks: entry.adapter ? adapterTasks({ tasks }) : tasks }
    const fallback = fallbackFault(own, offered, config.peers)
    if (fallback) throw invalid(at, ['fallbacks', fallback.at], fallback.message)
    if (entry.adapter) continue
    const pool = modelPoolsFault(entry, config.pools)
    if (pool) throw invalid(at, ['pools', pool.at], pool.message)
    const spans = nodesFault(entry, config.pools)
    if (spans) throw invalid(at, spans.key, spans.message)
    const model = offered.get(entry.id)!
    const slug = slugFault(model, slugs)
    if (slug) throw invalid(at, 'slug', slug)
    addSlugs(slugs, model)
    if (!model.enabled) continue
    const graph = graphFault(model)
    if (graph) throw invalid(at, 'comfyui', `Model '${model.id}': ${graph}`)
    if (!check) continue
    let features: ReadonlySet<Feature>
    try {
      features = check(model).features
    } catch (thrown) {
      throw thrown instanceof Failure ? invalid(at, 'engine', thrown.message) : thrown
    }
    const lacking = lackedByProfile(model, features)
    if (lacking) throw invalid(at, lacking.key, lacking.message)
    for (const adapter of model.adapters ?? []) {
      const missing = lackedByProfile({ ...model, profiles: adapter.profiles }, features)
      if (missing)
        throw invalid(
          entries.findIndex(({ id }) => id === adapter.id),
          missing.key,
          missing.message,
        )
    }
  }
  const require = (keys: string[], fault: string | undefined) => {
    if (fault) throw invalidValue(`${placeIn(document, text, path, keys)}: ${fault}`)
  }
  require(['prompt_rewriting', 'model'], rewritingFault(config))
  require(['ollama', 'loopback_token'], loopbackTokenFault(config))
  return config
}

const ofPeerText = (name: string, peer: string): string =>
  `the name '${name}' is for a model of the peer '${peer}': names here must not begin with '${peer}/'.`

/** Returns the JSON Schema (2020-12) of infer.yaml, for editors and for checks without infer. */
export const configSchema = (): object => standardSchema(describedSchema())

/** Returns the same schema with the metadata of each key from the zod schema. */
export const describedSchema = (): DescribedSchema =>
  z.toJSONSchema(Config, {
    io: 'input',
    target: 'draft-2020-12',
    override({ zodSchema, jsonSchema }) {
      const { def } = zodSchema._zod
      // zod omits the defaults of transformed values.
      if (def.type === 'default') jsonSchema.default ??= def.defaultValue as never
      // It depends on the machine.
      if ('absent' in jsonSchema) delete jsonSchema.default
      // The limits of JavaScript's safe integers are not limits of infer.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      // Formats that only zod knows are also expressed by the pattern.
      if (jsonSchema.pattern !== undefined && jsonSchema.format !== 'uri') delete jsonSchema.format
    },
  }) as DescribedSchema
