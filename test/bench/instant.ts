import { createServer } from 'node:http'

/** The instant engine of the gateway benchmark: prepared bytes, and streams of 50 tokens a second from one timer. Prints its port. */
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
  let stream = false
  req.on('data', (bytes: Buffer) => (stream ||= bytes.includes('"stream":true')))
  req.on('end', () => {
    if (!stream) {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
      res.end(answer)
      return
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(first)
    const timer = setInterval(() => res.write(token), 20)
    res.once('close', () => clearInterval(timer))
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))
