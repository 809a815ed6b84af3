import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import sharp from 'sharp'
import { type WebSocket, WebSocketServer } from 'ws'
import session from './fixtures/comfyui-session.json' with { type: 'json' }

/** What the fake does with a prompt; the text of the prompt names it. */
type Act = (run: Run) => void | Promise<void>

/** One prompt of a client. */
export interface Run {
  id: string
  graph: Record<string, { class_type: string; inputs: Record<string, unknown> }>
  /** Sends an event of this prompt to its client. */
  send(type: string, data?: object): void
  binary(bytes: Buffer): void
  cut(): void
  /** Writes the result to the history, and takes the prompt off the queue. */
  end(entry?: { outputs?: object; status?: object }): void
}

/**
 * A server that answers and misbehaves as ComfyUI 0.33 does, by messages that were recorded from it. The text of a prompt
 * chooses what happens: `ok` or a key of `acts`.
 */
export async function startComfyui(acts: Record<string, Act> = {}, port = 0) {
  const sockets = new Map<string, WebSocket>()
  const running: unknown[][] = []
  const pending: unknown[][] = []
  const history = new Map<string, object>()
  const seen: { uploads: string[]; prompts: Run['graph'][]; calls: string[] } = {
    uploads: [],
    prompts: [],
    calls: [],
  }
  let refuseSockets = false

  const success: Act = run => {
    const { messages } = session.success
    for (const message of messages) {
      if (message.base64 !== undefined) run.binary(Buffer.from(message.base64, 'base64'))
      else if (message.type === 'executing' && message.data.node === null) continue
      else run.send(message.type, message.data)
    }
    run.end()
    run.send('executing', { node: null })
  }

  function start(item: unknown[], clientId: string): void {
    const [, id, graph] = item as [number, string, Run['graph']]
    running.push(item)
    const take = () => {
      const at = running.indexOf(item)
      if (at >= 0) running.splice(at, 1)
    }
    const run: Run = {
      id,
      graph,
      send: (type, data = {}) =>
        sockets.get(clientId)?.send(JSON.stringify({ type, data: { ...data, prompt_id: id } })),
      binary: bytes => sockets.get(clientId)?.send(bytes),
      cut() {
        refuseSockets = true
        sockets.get(clientId)?.terminate()
      },
      end({ outputs, status } = {}) {
        take()
        const folder = String(graph['9']?.inputs.filename_prefix).split('/')[0]
        const images = [{ filename: 'ComfyUI_00001_.png', subfolder: folder, type: 'output' }]
        history.set(id, {
          outputs: outputs ?? { 9: { images }, 12: { images: [{ ...images[0], type: 'temp' }] } },
          status: status ?? { status_str: 'success', completed: true, messages: [] },
        })
      },
    }
    const text = Object.values(graph).find(node => typeof node.inputs.text === 'string')?.inputs.text as string
    void (acts[text] ?? success)(run)
  }

  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<unknown> => {
    const { pathname, searchParams } = new URL(req.url!, 'http://fake')
    const body = await bodyOf(req)
    const answer = (value: object, status = 200) => {
      res.writeHead(status, { 'content-type': 'application/json' })
      return res.end(JSON.stringify(value))
    }
    seen.calls.push(`${req.method} ${pathname}`)
    const json = () => JSON.parse(body.toString('utf8')) as Record<string, unknown>
    if (pathname === '/system_stats') return answer({ system: {} })
    if (pathname === '/queue' && req.method === 'GET') return answer({ queue_running: running, queue_pending: pending })
    if (pathname === '/queue') {
      const ids = json().delete as string[]
      for (const at of [...pending.keys()].toReversed())
        if (ids.includes(pending[at]![1] as string)) pending.splice(at, 1)
      return res.end()
    }
    if (pathname === '/interrupt') {
      const item = running.find(one => one[1] === json().prompt_id)
      if (item) {
        running.splice(running.indexOf(item), 1)
        history.set(item[1] as string, Object.values(session.interrupted.history)[0] as object)
      }
      return res.end()
    }
    if (pathname === '/upload/image') {
      const form = body.toString('latin1')
      const field = (name: string) => new RegExp(`name="${name}"\r\n\r\n([^\r]*)`).exec(form)?.[1] ?? ''
      const name = /filename="([^"]*)"/.exec(form)![1]!
      seen.uploads.push(`${field('subfolder')}/${name}`)
      return answer({ name, subfolder: field('subfolder'), type: field('type') })
    }
    if (pathname === '/prompt' && req.method === 'POST') {
      const { prompt, client_id } = json() as { prompt: Run['graph']; client_id: string }
      const refused = Object.values(prompt).find(({ inputs }) => typeof inputs.text === 'string')?.inputs.text as string
      if (refused in refusals) return answer(refusals[refused as keyof typeof refusals].answer, 400)
      seen.prompts.push(prompt)
      const item = [seen.prompts.length, randomUUID(), prompt, { client_id }, ['9']]
      if (refused === 'behind others') pending.push(item)
      else setImmediate(start, item, client_id)
      return answer({ prompt_id: item[1] as string, number: item[0] as number, node_errors: {} })
    }
    if (pathname === '/history' && req.method === 'POST') {
      for (const id of json().delete as string[]) history.delete(id)
      return res.end()
    }
    if (pathname.startsWith('/history/')) {
      const id = pathname.slice('/history/'.length)
      return answer(history.has(id) ? { [id]: history.get(id) } : {})
    }
    if (pathname === '/view' && searchParams.get('type') === 'output') {
      const bytes = await sharp({ create: { width: 32, height: 16, channels: 3, background: 'red' } })
        .png()
        .toBuffer()
      res.writeHead(200, { 'content-type': 'image/png' })
      return res.end(bytes)
    }
    return answer({ error: 'not found' }, 404)
  }
  const server = createServer((req, res) => void handle(req, res))
  const webSockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (req, socket, head) => {
    if (refuseSockets) {
      socket.destroy()
      return
    }
    webSockets.handleUpgrade(req, socket, head, one => {
      const id = new URL(req.url!, 'http://fake').searchParams.get('clientId')!
      sockets.set(id, one)
      one.on('error', () => {})
      one.send(JSON.stringify({ type: 'status', data: { status: { exec_info: { queue_remaining: 0 } }, sid: id } }))
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    running,
    pending,
    history,
    acceptSockets: () => (refuseSockets = false),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.values()) socket.terminate()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
export type FakeComfyui = Awaited<ReturnType<typeof startComfyui>>

/** Prompts that the real server refused, by the text that asks for them here. */
const refusals = {
  missing_node: session.missing_node,
  missing_model: session.missing_model,
  range: session.range,
} as const

async function bodyOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
