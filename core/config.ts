import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { Failure } from './failure.ts'
import { Bytes, Duration } from './quantities.ts'

/** Every timeout and bound of the server. All durations can be set down to 100 ms, so that tests need not wait. */
export const Limits = z
  .strictObject({
    json_body: Bytes.default(1 << 20),
    chat_body: Bytes.default(32 << 20),
    held_bodies: Bytes.default(256 << 20).describe(
      'What the bodies of all requests under way may take of memory together, with their copies.',
    ),
    depth: z.number().int().default(64),
    keys: z.number().int().default(10_000),
    headers_timeout: Duration.default(10_000),
    request_timeout: Duration.default(60_000),
    keep_alive_timeout: Duration.default(5_000),
    connections: z.number().int().default(12_000),
    write_deadline: Duration.default(30_000).describe('A reader that takes nothing for this long is cut off.'),
    stream_ping: Duration.default(15_000),
    streams_per_token: z.number().int().min(1).default(100).describe('Event streams and log followers open at a time.'),
    streams_per_organization: z.number().int().min(1).default(1_000).describe('The same of all its tokens together.'),
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

/** Where everything the program owns lies: `--data-dir`, INFER_DATA_DIR, or ~/.local/share/infer. */
export const dataDirectory = (flag?: string): string =>
  resolve(
    flag ??
      process.env.INFER_DATA_DIR ??
      join(process.env.XDG_DATA_HOME ?? join(homedir(), '.local', 'share'), 'infer'),
  )

/**
 * Returns the master key that INFER_MASTER_KEY holds or whose file INFER_MASTER_KEY_FILE names; undefined without either.
 * INFER_MASTER_KEY is removed from what child processes get, but /proc/<pid>/environ of this process keeps showing it.
 * Throws Failure `invalid_value` where both are set or the file cannot be read.
 */
export function masterKey(): string | undefined {
  const { INFER_MASTER_KEY: key, INFER_MASTER_KEY_FILE: path } = process.env
  delete process.env.INFER_MASTER_KEY
  if (path === undefined || path === '') return key
  if (key !== undefined)
    throw new Failure('invalid_value', 'INFER_MASTER_KEY and INFER_MASTER_KEY_FILE are both set. Unset one of them.')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new Failure(
      'invalid_value',
      `The master key in ${path} cannot be read: ${(cause as Error).message}. Check INFER_MASTER_KEY_FILE.`,
      { cause },
    )
  }
}

/** The environment of this process, for what is built for children out of parts of it. */
export const hostEnvironment = (): Readonly<Record<string, string | undefined>> => process.env

/** The address and token of a remote server, where INFER_URL says that the command line speaks to one. */
export const remote = (): { url: string; token: string | undefined } | undefined =>
  process.env.INFER_URL ? { url: process.env.INFER_URL.replace(/\/+$/, ''), token: process.env.INFER_TOKEN } : undefined
