import { createServer } from 'node:http'

/**
 * The engine of the fairness benchmark. It answers a chat after the milliseconds in its last message, `serve 200 for acme`,
 * and adds them to the total of that organization. Each model has its own path, `/<model>/v1`. `GET /used` returns the
 * totals. The engine limits nothing: infer must send at most one request per slot, and `maxAtOnce` shows whether it did.
 * Prints its port.
 */
export interface ServiceUse {
  /** Maximum number of requests that ran at the same time. */
  maxAtOnce: number
  /** Milliseconds of work and finished answers by organization. */
  organizations: Record<string, { ms: number; answers: number }>
}

const used: Record<string, ServiceUse> = {}
const running: Record<string, number> = {}
const json = { 'content-type': 'application/json' }
const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1760000000,
  model: 'bench',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Done.', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 12, completion_tokens: 2, total_tokens: 14 },
})

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.url === '/used') return void response.writeHead(200, json).end(JSON.stringify(used))
  if (request.method === 'GET') return void response.writeHead(200, json).end('{"object":"list","data":[]}')
  const model = request.url!.split('/')[1]!
  let body = ''
  request.on('data', (bytes: Buffer) => (body += bytes.toString()))
  request.on('end', () => {
    const [, ms, organization] = /serve (\d+) for ([\w-]+)/.exec(body)!
    const use = (used[model] ??= { maxAtOnce: 0, organizations: {} })
    const own = (use.organizations[organization!] ??= { ms: 0, answers: 0 })
    running[model] = (running[model] ?? 0) + 1
    use.maxAtOnce = Math.max(use.maxAtOnce, running[model])
    const began = performance.now()
    const timer = setTimeout(() => {
      own.answers++
      response.writeHead(200, json).end(answer)
    }, Number(ms))
    response.once('close', () => {
      clearTimeout(timer)
      running[model]!--
      own.ms += performance.now() - began
    })
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))
