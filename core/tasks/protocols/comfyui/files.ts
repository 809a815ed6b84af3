import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Failure } from '../../../failure.ts'
import type { Lease } from '../../../models/fleet.ts'
import { parseAnswer } from '../answer.ts'
import { ask } from '../ask.ts'
import { openEngineStream } from '../engine-stream.ts'
import { formBody } from '../form-body.ts'
import type { EngineFile } from '../generation-call.ts'
import type { SavedFile } from './history.ts'

/** Bytes of one output file. The output limit of the server is checked when the file is stored. */
const maxFileBytes = 4 * 2 ** 30
const maxAnswerBytes = 64 << 10

const usualEnding = { image: '.png', mask: '.png', video: '.mp4', audio: '.wav' } as const

/**
 * Uploads an input file into a folder of the job, and resolves with the value by which nodes name it. ComfyUI takes every
 * kind of file at this route.
 */
export async function upload(
  lease: Lease,
  path: string,
  { parameter, file, folder }: { parameter: string; file: string; folder: string },
  signal: AbortSignal,
): Promise<string> {
  const kind = parameter.replace(/_\d+$/, '') as keyof typeof usualEnding
  const filename = `${parameter}${extname(file) || usualEnding[kind]}`
  const { size } = await stat(file)
  const { body, contentType } = formBody(Object.entries({ type: 'input', subfolder: folder, overwrite: 'true' }), [
    { name: 'image', filename, contentType: 'application/octet-stream', path: file, bytes: size },
  ])
  const answer = parseAnswer(await ask(lease, path, body, maxAnswerBytes, signal, { contentType }))
  if (typeof answer.name !== 'string')
    throw new Failure('worker_error', `The engine of '${lease.modelId}' did not store the ${kind} of the request.`)
  const subfolder = typeof answer.subfolder === 'string' ? answer.subfolder : ''
  return subfolder === '' ? answer.name : `${subfolder}/${answer.name}`
}

/** Fetches an output file into a folder, and resolves with its new name there. */
export async function downloadOutput(
  lease: Lease,
  path: string,
  { file, folder, at }: { file: SavedFile; folder: string; at: number },
  signal: AbortSignal,
): Promise<EngineFile> {
  const query = new URLSearchParams({ filename: file.filename, subfolder: file.subfolder, type: file.type })
  const what = `'${file.filename.slice(0, 64)}'`
  const { bytes } = await openEngineStream(
    lease,
    { method: 'GET', path: `${path}?${query.toString()}`, body: '' },
    {
      maxBytes: maxFileBytes,
      tooLong: () =>
        new Failure('worker_error', `The engine made the file ${what} with more than ${maxFileBytes} bytes.`),
      empty: () => new Failure('worker_error', `The engine made the file ${what}, which is empty.`),
    },
    signal,
  )
  const name = `fetched-${at}${extname(file.filename).toLowerCase()}`
  await pipeline(bytes, createWriteStream(join(folder, name), { flags: 'wx' }))
  return { name, kind: file.kind }
}
