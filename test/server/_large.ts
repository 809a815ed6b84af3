/**
 * The client and the engine of a large request, each in its own process, so that they do not delay the server under
 * test. Run as `node _large.ts engine`, which prints its port, or `node _large.ts chat URL TOKEN BYTES` and `node
 * _large.ts embed URL TOKEN MODEL SIZE`, which print what they received as JSON.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Seen {
  status: number
  /** What the engine received by its own report, or the error. */
  answer: string
  /** What was sent to the server. */
  sent: string
  ms: number
}

const digest = (text: string): string => `${text.length} ${createHash('sha256').update(text).digest('hex')}`
const print = (seen: Seen): void => void process.stdout.write(JSON.stringify(seen))

/** Answers a chat with the length and the hash of its long text, embeddings with vectors that contain their index. */
async function engine(): Promise<void> {
  const json = (response: ServerResponse, value: object) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.once('end', () => {
      const body = JSON.parse(Buffer.concat(parts).toString('utf8')) as {
        messages?: { content: { text: string }[] }[]
        model: string
        input?: string[]
        encoding_format?: string
      }
      if (body.input) {
        // It supports base64 unless its name says that it writes numbers out.
        const [, size, floats] = /(\d+)(-floats)?/.exec(body.model)!
        const data = body.input.map((text, index) => {
          const vector = Array.from({ length: Number(size) }, (_, at) => (Number(text) + 1) / (at + 1))
          const embedding =
            floats || body.encoding_format !== 'base64'
              ? vector
              : Buffer.from(Float32Array.from(vector).buffer).toString('base64')
          return { object: 'embedding', index, embedding }
        })
        return json(response, { data: data.toReversed(), usage: { prompt_tokens: data.length } })
      }
      const content = digest(body.messages![0]!.content[1]!.text)
      return json(response, { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] })
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  process.stdout.write(String((server.address() as AddressInfo).port))
}

async function send(url: string, token: string, body: string): Promise<{ status: number; text: string; ms: number }> {
  const from = performance.now()
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
  })
  return { status: response.status, text: await response.text(), ms: performance.now() - from }
}

/** A chat whose body has exactly this many bytes, nearly all of them one text. */
async function chat(url: string, token: string, bytes: number): Promise<void> {
  const bodyOf = (long: string) =>
    JSON.stringify({
      model: 'large',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'text', text: long },
          ],
        },
      ],
    })
  const room = bytes - bodyOf('').length
  const long = randomBytes(Math.ceil((room * 3) / 4) + 3)
    .toString('base64')
    .slice(0, room)
  const { status, text, ms } = await send(`${url}/std/v1/chat/completions`, token, bodyOf(long))
  const answer =
    status === 200 ? (JSON.parse(text) as { choices: [{ message: { content: string } }] }).choices[0] : text
  print({ status, answer: typeof answer === 'string' ? answer : answer.message.content, sent: digest(long), ms })
}

/** Requests the maximum number of embeddings; answers with the indexes that are wrong. */
async function embed(url: string, token: string, model: string, size: number): Promise<void> {
  const input = Array.from({ length: 2048 }, (_, at) => String(at))
  const { status, text, ms } = await send(`${url}/std/v1/embeddings`, token, JSON.stringify({ model, input }))
  if (status !== 200) return print({ status, answer: text, sent: '', ms })
  const { data } = JSON.parse(text) as { data: { index: number; embedding: number[] }[] }
  const right = data.filter(
    ({ index, embedding }, at) =>
      index === at &&
      embedding.length === size &&
      embedding.every((value, d) => Math.fround(value) === Math.fround((at + 1) / (d + 1))),
  )
  print({ status, answer: `${right.length} of ${data.length} right`, sent: `${text.length} bytes came`, ms })
}

const [role, url, token, what, size] = process.argv.slice(2)
if (role === 'engine') await engine()
else if (role === 'chat') await chat(url!, token!, Number(what))
else if (role === 'embed') await embed(url!, token!, what!, Number(size))
