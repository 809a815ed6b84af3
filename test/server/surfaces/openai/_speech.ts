import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decode } from '../../../gpu/engines/demo/_tones.ts'

export const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0

/** The demo engine as a speech model. */
export const toneModel = (more: object = {}) => ({
  id: 'tones',
  engine: 'demo',
  tasks: ['std/audio-speech'],
  devices: 'cpu',
  memory: '128MiB',
  concurrency: 4,
  stop_grace: '500ms',
  ...more,
})

/** The text in a WAV file of the demo engine. */
export const heardInWav = (bytes: Uint8Array): string =>
  decode(new Int16Array(Uint8Array.from(bytes.subarray(44)).buffer), Buffer.from(bytes).readUInt32LE(24)).text

/** The text in any file, decoded by ffmpeg. */
export function heardIn(bytes: Uint8Array, inputOptions: string[] = []): string {
  const { stdout, stderr } = spawnSync(
    'ffmpeg',
    ['-v', 'error', ...inputOptions, '-i', 'pipe:0', '-f', 's16le', '-ac', '1', '-ar', '16000', 'pipe:1'],
    { input: bytes, maxBuffer: 64 << 20 },
  )
  if (stderr.length > 0) throw new Error(stderr.toString('utf8'))
  return decode(new Int16Array(Uint8Array.from(stdout).buffer), 16_000).text
}

type Answer = (
  response: ServerResponse,
  request: IncomingMessage,
  body: Record<string, unknown>,
) => void | Promise<void>

/** A remote server on a real socket; `answers` answer the requests one after another, the last one all further ones. */
export async function remoteSpeaker(...answers: Answer[]) {
  const bodies: Record<string, unknown>[] = []
  const paths: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      paths.push(`${request.method} ${request.url}`)
      const text = Buffer.concat(chunks).toString('utf8')
      const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
      if (text !== '') bodies.push(body)
      const answer = answers[Math.min(paths.length, answers.length) - 1]!
      void answer(response, request, body)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    bodies,
    paths,
    model: (more: object = {}) => ({
      id: 'far',
      engine: 'remote',
      url: `http://127.0.0.1:${port}/v1`,
      tasks: ['std/audio-speech'],
      ...more,
    }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
