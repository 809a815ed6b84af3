import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { baseDirectory } from './base-directory.ts'
import { invalidValue } from './failure.ts'
import { maxJsonDepth } from './json.ts'
import { Bytes, Duration } from './quantities.ts'

/** A section of infer.yaml, whose keys all have defaults or may be absent. */
export const section = <Shape extends z.ZodRawShape>(description: string, example: object, shape: Shape) =>
  z
    .strictObject(shape)
    .prefault({} as never)
    .meta({ description, example, absent: 'the defaults of its keys' })

/** Every timeout and limit of the server. All durations can be set down to 100 ms, so that tests need not wait. */
export const Limits = section(
  'Timeouts and maximum sizes.',
  { drain_timeout: '5m', upload_size: '2GiB' },
  {
    json_body: Bytes.default(1 << 20).meta({
      description:
        'Maximum size of a JSON request body on routes that take no media in the body, and of the inputs of one job without the media in them.',
      example: '2MiB',
    }),
    chat_body: Bytes.default(32 << 20).meta({
      description:
        'Maximum size of a JSON request body on routes that take images, audio or video in the body: chat, images, transcriptions, jobs and everything under /slug.',
      example: '64MiB',
    }),
    held_bodies: Bytes.default(256 << 20).meta({
      description:
        'Memory for the bodies of all running requests together, with their copies. Further requests get 503 `no_capacity`.',
      example: '1GiB',
    }),
    depth: z.int().min(8).max(maxJsonDepth).default(64).meta({
      description: 'Maximum nesting of objects and arrays in a JSON body.',
      unit: 'levels',
      example: 32,
    }),
    keys: z.int().default(10_000).meta({
      description: 'Maximum number of object members in a JSON body, all objects together. Workflows may have more.',
      unit: 'members',
      example: 50_000,
    }),
    headers_timeout: Duration.default(10_000).meta({
      description: 'Time in which a client must complete the TLS handshake and the headers of a request.',
      example: '20s',
    }),
    request_timeout: Duration.default(60_000).meta({
      description:
        'Time in which a client must send a whole request, its body included. Raise it for large uploads over slow connections.',
      example: '10m',
    }),
    keep_alive_timeout: Duration.default(5_000).meta({
      description: 'Time after which an idle connection is closed. Set it higher than the idle timeout of your proxy.',
      example: '75s',
    }),
    connections: z.int().default(12_000).meta({
      description:
        'Maximum number of open connections; further ones are closed at once. Each needs an open file: see `ulimit -n`.',
      unit: 'connections',
      example: 2_000,
    }),
    write_deadline: Duration.default(30_000).meta({
      description: 'Time after which a stream whose client reads nothing is closed, and its work on the engine ended.',
      example: '1m',
    }),
    stream_ping: Duration.default(15_000).meta({
      description: 'Longest silence on an event stream: after it a comment line keeps the connection open.',
      example: '10s',
    }),
    streams_per_token: z.int().min(1).default(100).meta({
      description:
        'Maximum number of event streams and log followers that one token has open at a time. Streams of generations do not count.',
      unit: 'streams',
      example: 20,
    }),
    streams_per_organization: z.int().min(1).default(1_000).meta({
      description:
        'Maximum number of event streams and log followers that all tokens of an organization have open at a time.',
      unit: 'streams',
      example: 200,
    }),
    engine_answer: Bytes.default(32 << 20).meta({
      description: 'Maximum size of an answer of an engine that is not a stream. A larger one is 502 `worker_error`.',
      example: '64MiB',
    }),
    engine_embedding: Bytes.default(96 << 10).meta({
      description:
        'Size that each requested vector may have in an answer, where all of them need more than `engine_answer`: 96 KiB is 4,096 numbers as text or 18,000 in base64.',
      example: '192KiB',
    }),
    stream_frame: Bytes.default(4 << 20).meta({
      description: 'Maximum size of one event in the stream of an engine. A larger one ends the stream with an error.',
      example: '8MiB',
    }),
    engine_backoff: Duration.default(1_000).meta({
      description:
        'Pause before an engine that failed to start is started again. It doubles with every failure, up to five minutes.',
      example: '5s',
    }),
    engine_turn: Duration.optional().meta({
      description: 'Has no effect: `order_bound` has replaced it.',
      example: '30s',
      absent: 'nothing',
    }),
    order_bound: z.number().min(0).default(10).meta({
      description:
        'How many loads a request may be later than the reference order would have served it, before a busy engine makes room for its model. The reference order ignores which models are loaded: class, share of the organization, arrival. Fewer is fairer, more loads less often.',
      unit: 'loads',
      example: 5,
    }),
    parking_memory: Bytes.optional().meta({
      description:
        'Main memory that engines may use together which are or were parked: see `parking` of a model. 0 parks none.',
      example: '64GiB',
      absent: 'a quarter of the main memory that is free when the server starts',
    }),
    hold_max: Duration.default(600_000).meta({
      description:
        'Longest time for which a synchronous request is held while its model loads or is busy, where `dispatch_wait_ms` of the model is `auto`: a request that is expected to wait longer is refused at once, with the expected time.',
      example: '2m',
    }),
    drain_timeout: Duration.default(60_000).meta({
      description:
        'Time that running requests have to end when the server stops. Jobs that are not done by then return to the queue. `infer serve --drain-timeout` overrides it.',
      example: '5m',
    }),
    min_free_disk: Bytes.default(1 << 30).meta({
      description:
        'Free space on the disk of the data directory below which new jobs and uploads get 503 `disk_full`. Running work still ends and is stored.',
      example: '10GiB',
    }),
    ballast: Bytes.default(64 << 20).meta({
      description:
        'Size of a file in the data directory that is removed when the disk is full, so that running work can be stored. 0 makes none.',
      example: '256MiB',
    }),
    adopt_grace: Duration.default(20_000).meta({
      description:
        'How long engines stay loaded after the server was killed or has crashed, so that its next start takes them over without loading them again. Then they end. A server that is stopped ends them at once. 0: they end with the server in any case.',
      example: '2m',
    }),
    cancel_grace: Duration.default(5_000).meta({
      description:
        'Time that an engine may go on with a cancelled request before it is killed and loaded again. An engine that serves other requests and has a free slot is not killed; the slot of the cancelled request stays occupied until it has ended.',
      example: '15s',
    }),
    sync_wait: Duration.default(120_000).meta({
      description:
        'Longest time that `sync_mode`, /fal/run and the OpenAI-compatible image routes hold a request. Then the answer names the job, which continues.',
      example: '5m',
    }),
    job_retention: Duration.default(7 * 86_400_000).meta({
      description: 'Time that a finished job or execution is kept, with its files. 0 keeps it until it is removed.',
      example: '30d',
    }),
    response_retention: Duration.default(30 * 86_400_000).meta({
      description: 'Time that a response of /std/v1/responses with `store` is kept. 0 keeps it until it is deleted.',
      example: '7d',
    }),
    upload_retention: Duration.default(7 * 86_400_000).meta({
      description: 'Time that an uploaded file is kept, where the upload does not say. 0 keeps it until it is removed.',
      example: '1d',
    }),
    upload_size: Bytes.default(512 << 20).meta({
      description: 'Maximum size of an uploaded file, of a form with files, and of a video that a request names.',
      example: '2GiB',
    }),
    audio_size: Bytes.default(25 << 20).meta({
      description: 'Maximum size of an audio file that a request sends or names.',
      example: '100MiB',
    }),
    audio_length: Duration.default(3_600_000).meta({
      description: 'Maximum length of audio that a request sends or names.',
      example: '3h',
    }),
    audio_decoded: Bytes.default(256 << 20).meta({
      description:
        'Maximum size of audio when it is decoded: one hour is 110 MiB. All audio that waits for a free slot may take 16 times this on disk.',
      example: '512MiB',
    }),
    link_lifetime: Duration.default(86_400_000).meta({
      description: 'Time that the signed address of a file works, 7 days at most.',
      example: '1h',
    }),
    link_reads_per_minute: z.int().min(1).default(600).meta({
      description:
        'Reads of shared conversations, and of images in them, that one client address may send in a minute. Further ones get 429.',
      unit: 'requests per minute',
      example: 120,
    }),
    output_size: Bytes.default(2 ** 30).meta({
      description: 'Maximum size of all files that one job makes.',
      example: '4GiB',
    }),
    wrong_tokens_per_minute: z.int().min(1).default(30).meta({
      description:
        'Requests with a wrong token that one client address may send in a minute. Further wrong ones get 429; correct tokens are never refused.',
      unit: 'requests per minute',
      example: 10,
    }),
  },
)
export type Limits = z.output<typeof Limits>

/**
 * Returns the data directory: `--data-dir`, INFER_DATA_DIR unless it is empty, or ~/.local/share/infer.
 * Throws Failure `invalid_value` for an empty `--data-dir`, which would be the current folder.
 */
export function dataDirectory(flag?: string): string {
  if (flag === '') throw invalidValue('--data-dir is empty. Name a folder, or leave it out for ~/.local/share/infer.')
  return resolve(flag ?? (process.env.INFER_DATA_DIR || join(baseDirectory('XDG_DATA_HOME', process.env), 'infer')))
}

/**
 * Returns the master key from INFER_MASTER_KEY or from the file in INFER_MASTER_KEY_FILE; undefined without either.
 * Child processes do not inherit INFER_MASTER_KEY, but /proc/<pid>/environ of this process still shows it.
 * Throws Failure `invalid_value` where both are set or the file cannot be read.
 */
export function masterKey(): string | undefined {
  const { INFER_MASTER_KEY: key, INFER_MASTER_KEY_FILE: path } = process.env
  delete process.env.INFER_MASTER_KEY
  if (path === undefined || path === '') return key
  if (key !== undefined)
    throw invalidValue('INFER_MASTER_KEY and INFER_MASTER_KEY_FILE are both set. Unset one of them.')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw invalidValue(
      `The master key in ${path} cannot be read: ${(cause as Error).message}. Check INFER_MASTER_KEY_FILE.`,
      { cause },
    )
  }
}

/** Returns the environment of this process, for code that builds the environment of child processes from parts of it. */
export const hostEnvironment = (): Readonly<Record<string, string | undefined>> => process.env

/** Returns the address and token of the remote server that the command line uses if INFER_URL is set. */
export const remoteServer = (): { url: string; token: string | undefined } | undefined =>
  process.env.INFER_URL ? { url: process.env.INFER_URL.replace(/\/+$/, ''), token: process.env.INFER_TOKEN } : undefined
