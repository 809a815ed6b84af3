import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll } from 'vitest'
import { tinyChatRandom, writeTinyModels } from '../../../../bin/tiny-models.ts'
import type { GgufEngineOptions } from '../../../../gpu/engines/gguf/options.ts'
import { fixtureProgram } from '../../../_fixtures.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-gguf-'))
writeTinyModels(folder)
writeFileSync(join(folder, 'tiny-chat-random.gguf'), tinyChatRandom())
const running: (() => Promise<unknown>)[] = []
afterAll(async () => {
  await Promise.all(running.map(stop => stop()))
  rmSync(folder, { recursive: true, force: true })
})

export const file = (name: string): string => join(folder, name)

export type Json = { [key: string]: any } // oxlint-disable-line typescript/no-explicit-any -- answers are looked into freely

/** A child process that runs the engine. `line` resolves with the first log line that matches. */
export function spawnEngine(options: Partial<GgufEngineOptions> & { model: string }) {
  const child = spawn(
    process.execPath,
    [
      fixtureProgram('gguf-engine'),
      JSON.stringify({
        id: 'toy',
        tasks: ['std/chat-completion'],
        threads: 1,
        parallel: 1,
        gpu: 'off',
        ...(options.socket ? {} : { port: 0 }),
        ...options,
      }),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH, OMP_WAIT_POLICY: 'PASSIVE' } },
  )
  const log: string[] = []
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const seen = new Map<string, (line: string) => void>()
  createInterface({ input: child.stderr }).on('line', line => {
    log.push(line)
    for (const [text, resolve] of seen) if (line.includes(text)) resolve(line)
  })
  const line = (text: string) =>
    Promise.race([
      new Promise<string>(resolve => {
        const known = log.find(entry => entry.includes(text))
        if (known) resolve(known)
        else seen.set(text, resolve)
      }),
      exited.then(() => {
        throw new Error(`The engine ended without saying '${text}':\n${log.join('\n')}`)
      }),
    ])
  running.push(() => {
    child.kill('SIGKILL')
    return exited
  })
  return { child, log, exited, line }
}

/** A ready engine and a client for it. */
export async function startEngine(options: Partial<GgufEngineOptions> & { model: string }) {
  const engine = spawnEngine({ ...options, model: file(options.model) })
  const { address } = JSON.parse(await engine.line('The engine is ready')) as { address: string }
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(address + path, {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Json }
  }
  const chat = (fields: Json) => post('/v1/chat/completions', { model: 'toy', messages: [user('hi')], ...fields })
  /** The chunks of a stream, without the required mark at its end. */
  const stream = async (fields: Json): Promise<Json[]> => {
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'toy', messages: [user('hi')], stream: true, ...fields }),
    })
    if (response.status !== 200) throw new Error(await response.text())
    const frames = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
      .decode(await response.arrayBuffer())
      .split('\n\n')
    if (frames.pop() !== '' || frames.pop() !== 'data: [DONE]') throw new Error('The stream did not end as it must.')
    return frames.map(frame => JSON.parse(frame.replace(/^data: /, '')) as Json)
  }
  /** Opens a stream and returns it once the first chunk has arrived. */
  const open = async (fields: Json): Promise<{ request: ClientRequest; response: IncomingMessage }> => {
    const request = httpRequest(`${address}/v1/chat/completions`, { method: 'POST', agent: false })
    request.end(JSON.stringify({ model: 'toy', messages: [user('hi')], stream: true, ...fields }))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await once(response, 'readable')
    return { request, response }
  }
  return { ...engine, address, post, chat, stream, open }
}

export const user = (content: string) => ({ role: 'user', content })
export const textOf = (chunks: Json[]): string => chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join('')
