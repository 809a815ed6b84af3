import { createServer } from 'node:http'

/** An engine that streams a chat without end, as fast as the server reads it. Prints its port. */
const frame = Buffer.from(
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta: { role: 'assistant', content: 'x'.repeat(8_000) }, finish_reason: null }] })}\n\n`,
)
const server = createServer((req, res) => {
  req.resume()
  if (req.method === 'GET') return void res.writeHead(200).end('{"object":"list","data":[]}')
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const write = () => {
    while (!res.destroyed && res.write(frame));
  }
  res.on('drain', write)
  write()
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))
