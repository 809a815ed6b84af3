import { createServer } from 'node:http'

/**
 * The instant engine of the gateway benchmarks: prepared bytes, and streams of 50 tokens a second from one timer, or of one
 * token if the request says `stay silent`. Prints its port.
 */
const answer = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1760000000,
    model: 'bench',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'An answer of ordinary length, as models give them every day.',
          refusal: null,
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 12, completion_tokens: 14, total_tokens: 26 },
  }),
)
const vectors = Array.from({ length: 1_000 }, (_, index) =>
  Float32Array.from({ length: 384 }, (__, at) => Math.sin(index + at) / 20),
)
const embeddings = (shown: (vector: Float32Array) => unknown) =>
  Buffer.from(
    JSON.stringify({
      object: 'list',
      model: 'bench',
      data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: shown(vector) })),
      usage: { prompt_tokens: 20_000, total_tokens: 20_000 },
    }),
  )
const asNumbers = embeddings(vector => Array.from(vector))
const asBase64 = embeddings(vector => Buffer.from(vector.buffer).toString('base64'))
const chunk = (delta: object, finish: string | null = null) =>
  Buffer.from(
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1760000000, model: 'bench', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })}\n\n`,
  )
const first = chunk({ role: 'assistant', content: '' })
const token = chunk({ content: ' token' })

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
  if (req.method === 'GET') {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end('{"object":"list","data":[]}')
    return
  }
  let [stream, silent, base64] = [false, false, false]
  req.on('data', (bytes: Buffer) => {
    stream ||= bytes.includes('"stream":true')
    silent ||= bytes.includes('stay silent')
    base64 ||= bytes.includes('"base64"')
  })
  req.on('end', () => {
    if (!stream) {
      const bytes = req.url === '/v1/embeddings' ? (base64 ? asBase64 : asNumbers) : answer
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
      res.end(bytes)
      return
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(first)
    if (silent) {
      res.write(token)
      return
    }
    const timer = setInterval(() => res.write(token), 20)
    res.once('close', () => clearInterval(timer))
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))
