import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { faultOf, placeIn, syntaxFault } from './config-fault.ts'
import { Failure } from './failure.ts'
import { isNetwork } from './media/address.ts'
import { Model } from './models/model.ts'
import { Bytes, Duration } from './models/quantities.ts'
import { slugFault } from './models/slugs.ts'

/** Every timeout and bound of the server. All durations can be set down to 100 ms, so that tests need not wait. */
export const Limits = z
  .strictObject({
    json_body: Bytes.default(1 << 20),
    chat_body: Bytes.default(32 << 20),
    held_bodies: Bytes.default(256 << 20).describe('What the bodies of all requests under way may hold together.'),
    depth: z.number().int().default(64),
    keys: z.number().int().default(10_000),
    headers_timeout: Duration.default(10_000),
    request_timeout: Duration.default(60_000),
    keep_alive_timeout: Duration.default(5_000),
    connections: z.number().int().default(12_000),
    write_deadline: Duration.default(30_000).describe('A reader that takes nothing for this long is cut off.'),
    stream_ping: Duration.default(15_000),
    engine_answer: Bytes.default(32 << 20).describe('What an engine may answer with, a stream apart.'),
    engine_embedding: Bytes.default(96 << 10).describe(
      'What each vector that was asked for may take of it, where they take more: 4096 numbers as text, 18000 in base64.',
    ),
    stream_frame: Bytes.default(4 << 20),
    engine_backoff: Duration.default(1_000).describe(
      'Before an engine that failed to start is started again; doubles with every failure, up to five minutes.',
    ),
    engine_turn: Duration.default(10_000).describe(
      'How long a model waits for busy memory before the models there must let it have its turn.',
    ),
    drain_timeout: Duration.default(60_000),
    min_free_disk: Bytes.default(1 << 30),
    ballast: Bytes.default(64 << 20),
    cancel_grace: Duration.default(5_000).describe(
      'How long an engine may go on with a job that was cancelled before it is killed and loaded anew.',
    ),
    sync_wait: Duration.default(120_000).describe('How long `sync_mode` holds a request at most.'),
    job_retention: Duration.default(7 * 86_400_000).describe(
      'How long a job that has ended is kept, with its files; 0 keeps it until it is removed.',
    ),
    upload_retention: Duration.default(7 * 86_400_000).describe('The same for files that were uploaded.'),
    upload_size: Bytes.default(512 << 20),
    audio_size: Bytes.default(25 << 20).describe('Of a sound that is sent in.'),
    audio_length: Duration.default(3_600_000).describe('How long a sound may last.'),
    audio_decoded: Bytes.default(256 << 20).describe('What a sound may come to when it is decoded.'),
    link_lifetime: Duration.default(86_400_000).describe('How long the address of a file works, at most 7 days.'),
    output_size: Bytes.default(2 ** 30).describe('What the files of one job may take.'),
    wrong_tokens_per_minute: z.number().int().min(1).default(30),
  })
  .prefault({})
export type Limits = z.output<typeof Limits>

/** infer.yaml. */
export const Config = z
  .strictObject({
    listen: z.string().default('127.0.0.1:8787'),
    public_url: z.url().optional(),
    allowed_hosts: z
      .array(z.string())
      .default([])
      .describe('Host names besides loopback and IP literals under which the server answers.'),
    models: z
      .array(Model)
      .nullish()
      .transform(models => models ?? [])
      .describe('What is offered. Without any, the toys that ship with infer are.'),
    media: z
      .strictObject({
        ffmpeg: z.string().optional().describe('The ffmpeg program; the one on the PATH when absent.'),
        ffprobe: z.string().optional().describe('The ffprobe program; the one on the PATH when absent.'),
        allowed_hosts: z
          .array(z.string())
          .optional()
          .describe('Where given, only these hosts are fetched from; a leading `*.` stands for any name below.'),
        allowed_addresses: z
          .array(z.string().refine(isNetwork, 'must be an IP address or a network such as 10.1.0.0/16'))
          .default([])
          .describe('Private addresses or networks (CIDR) that may be fetched from all the same, on any port.'),
      })
      .prefault({})
      .describe('What is done with the addresses of pictures and videos that callers send.'),
    limits: Limits,
  })
  .meta({ id: 'Config', title: 'infer.yaml' })
export type Config = z.output<typeof Config>

/** Where everything the program owns lies: `--data-dir`, INFER_DATA_DIR, or ~/.local/share/infer. */
export const dataDirectory = (flag?: string): string =>
  resolve(
    flag ??
      process.env.INFER_DATA_DIR ??
      join(process.env.XDG_DATA_HOME ?? join(homedir(), '.local', 'share'), 'infer'),
  )

/** INFER_MASTER_KEY, which is taken out of the environment so that no child process and no dump shows it. */
export function masterKey(): string | undefined {
  const key = process.env.INFER_MASTER_KEY
  delete process.env.INFER_MASTER_KEY
  return key
}

/** The environment of this process, for what is built for children out of parts of it. */
export const hostEnvironment = (): Readonly<Record<string, string | undefined>> => process.env

/** The address and token of a remote server, where INFER_URL says that the command line speaks to one. */
export const remote = (): { url: string; token: string | undefined } | undefined =>
  process.env.INFER_URL ? { url: process.env.INFER_URL.replace(/\/+$/, ''), token: process.env.INFER_TOKEN } : undefined

/**
 * Reads infer.yaml. No file means the defaults when `required` is false.
 * Throws Failure `invalid_value` whose message names the file, the line and what is wrong there.
 */
export function readConfig(path: string, required: boolean, check?: (model: Model) => unknown): Config {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if (!required && (cause as NodeJS.ErrnoException).code === 'ENOENT') return Config.parse({})
    throw new Failure('invalid_value', `The configuration ${path} cannot be read: ${(cause as Error).message}.`, {
      cause,
    })
  }
  return parseConfig(text, path, check)
}

/**
 * The same for text that is at hand; `path` only names it in messages, which begin with `path:line:column`. `check`
 * throws a Failure for an enabled model that cannot be offered for reasons that the schema does not know.
 */
export function parseConfig(text: string, path: string, check?: (model: Model) => unknown): Config {
  const document = parseDocument(text)
  const [syntax] = document.errors
  if (syntax) throw new Failure('invalid_value', syntaxFault(syntax, path))
  const value: unknown = document.toJS() ?? {}
  const parsed = Config.safeParse(value)
  if (!parsed.success) throw faultOf(parsed.error, { value, document, text, path, schema: configSchema() })
  const { models } = parsed.data
  const wrong = (at: number, field: string, message: string) =>
    new Failure('invalid_value', `${placeIn(document, text, path, ['models', at, field])}: ${message}`)
  for (const [at, model] of models.entries()) {
    if (models.findIndex(other => other.id === model.id) !== at)
      throw wrong(at, 'id', `the model id '${model.id}' is used twice; ids must differ.`)
    const slug = slugFault(model, models.slice(0, at))
    if (slug) throw wrong(at, 'slug', slug)
    if (!check || !model.enabled) continue
    try {
      check(model)
    } catch (thrown) {
      throw thrown instanceof Failure ? wrong(at, 'engine', thrown.message) : thrown
    }
  }
  return parsed.data
}

/** infer.yaml as a JSON Schema (2020-12), for editors and for checks without infer. */
export const configSchema = (): object =>
  z.toJSONSchema(Config, {
    io: 'input',
    target: 'draft-2020-12',
    override({ jsonSchema }) {
      // The bounds of what JavaScript counts exactly are no bounds of ours.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      // What zod calls a format beyond the standard's own is in the pattern too.
      if (jsonSchema.pattern !== undefined) delete jsonSchema.format
    },
  })
