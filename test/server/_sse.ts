import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { TestApp } from '../_app.ts'

export interface Told {
  id?: string
  event?: string
  data: { id?: string; type: string; timestamp: string; created_at: number; data: Record<string, unknown> }
}

/** A reader of server-sent events over its own connection, which can disconnect or pause at any record. */
export async function openReader(app: TestApp, path: string, headers: Record<string, string> = {}) {
  const asked = request(app.url + path, {
    agent: false,
    headers: { authorization: `Bearer ${app.secret}`, ...headers },
  })
  asked.on('error', () => {})
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.setEncoding('utf8')
  let rest = ''
  const records: Told[] = []
  const comments: string[] = []
  let over = false
  const waiting = new Set<() => void>()
  const tell = () => {
    for (const look of waiting) look()
  }
  let fields: Record<string, string> = {}
  response.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines)
      if (line === '') {
        const { id, event, data } = fields
        fields = {}
        if (data === undefined) throw new Error('The server sent an event without data')
        records.push({
          ...(id === undefined ? {} : { id }),
          ...(event === undefined ? {} : { event }),
          data: JSON.parse(data) as Told['data'],
        })
      } else if (line.startsWith(':') || line.startsWith('retry:')) comments.push(line)
      else {
        const [, name, value] = /^(\w+): (.*)$/.exec(line)!
        fields[name!] = value!
      }
    tell()
  })
  response.on('error', () => {})
  response.once('close', () => {
    over = true
    tell()
  })
  return {
    status: response.statusCode,
    headers: response.headers,
    records,
    comments,
    response,
    /** Whether the stream has ended, by either side. */
    get over() {
      return over
    },
    /** Resolves once the condition holds; rejects when the stream has ended before. */
    until(holds: () => boolean): Promise<void> {
      return new Promise((resolve, reject) => {
        const look = () => {
          if (!holds() && !over) return
          waiting.delete(look)
          if (holds()) resolve()
          else reject(new Error(`The stream ended after ${JSON.stringify(records).slice(-2_000)}`))
        }
        waiting.add(look)
        look()
      })
    },
    /** Resolves with all records when the server has ended the stream. */
    async whole(): Promise<Told[]> {
      await this.until(() => over)
      return records
    },
    cut(): void {
      asked.destroy()
    },
    [Symbol.dispose](): void {
      asked.destroy()
    },
  }
}
export type Reader = Awaited<ReturnType<typeof openReader>>
