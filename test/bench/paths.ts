import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { crc32, deflateSync } from 'node:zlib'
import nodeFlags from '../../bin/node-flags.json' with { type: 'json' }
import { closeBench, cpuOf, folder, limitedToken, median, openBench, rssOf, start } from './_gateway.ts'

/**
 * Measures large requests and many idle streams through infer and through the minimal proxy of `gateway.ts`, in
 * alternation: processor time of a request, and how long `/livez` waits meanwhile. Prints one line for each path. Run:
 * `npx node test/bench/paths.ts [rounds] [streams]` after `npm run build`;
 * with 0 rounds only the streams. A stream needs two open files of infer: see `ulimit -n`.
 */
const [rounds = 7, streams = 9_500] = process.argv.slice(2).map(Number)
const perRound = 40
const atOnce = 4
/** Streams of one model, and as many models as the streams need. */
const perModel = 4_096
const models = Array.from({ length: Math.ceil(streams / perModel) }, (_, at) => (at === 0 ? 'bench' : `bench-${at}`))

const chat = (content: unknown, more: object = {}) =>
  JSON.stringify({ model: 'bench', messages: [{ role: 'user', content }], max_tokens: 64, ...more })
const embed = (encoding_format: string) =>
  JSON.stringify({ model: 'bench', input: Array(1_000).fill(words(100)), encoding_format })
const words = (bytes: number) => 'words of an ordinary prompt, '.repeat(bytes / 29)
/** An image whose pixels cannot be compressed: a megabyte as PNG. */
function picture(): string {
  const side = 580
  const rows = Buffer.concat(Array.from({ length: side }, () => Buffer.concat([Buffer.of(0), randomBytes(side * 3)])))
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, sum])
  }
  const header = Buffer.from([0, 0, side >> 8, side & 255, 0, 0, side >> 8, side & 255, 8, 2, 0, 0, 0])
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  const parts = [signature, chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]
  return `data:image/png;base64,${Buffer.concat(parts).toString('base64')}`
}
const paths = {
  'embeddings of 1,000 texts as base64': ['embeddings', embed('base64')],
  'embeddings of 1,000 texts as numbers': ['embeddings', embed('float')],
  'a prompt of 100 kB': ['chat/completions', chat(words(100_000))],
  'an image of 1 MB as data': [
    'chat/completions',
    chat([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: picture() } },
    ]),
  ],
} as const

interface Server {
  pid: number
  port: number
  prefix: string
  token: string
}
const agent = new Agent({ keepAlive: true })

/** Sends one request and reads its answer. Resolves with the milliseconds that it took. */
const ask = ({ port, prefix, token }: Server, method: string, path: string, body = ''): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    request({ port, host: '127.0.0.1', method, path: prefix + path, headers, agent }, response => {
      if (response.statusCode !== 200) reject(new Error(`${path} was answered ${response.statusCode}`))
      response.resume().once('end', () => resolve(performance.now() - began))
    })
      .once('error', reject)
      .end(body)
  })

/** Sends a round of requests, some at a time, and does something else meanwhile. */
async function round(server: Server, path: string, body: string, meanwhile = async (_more: () => boolean) => {}) {
  let left = perRound
  const asker = async () => {
    while (left-- > 0) await ask(server, 'POST', path, body)
  }
  await Promise.all([...Array.from({ length: atOnce }, asker), meanwhile(() => left > 0)])
}

/** Processor milliseconds of a request. */
async function costOf(server: Server, path: string, body: string): Promise<number> {
  const begun = cpuOf(server.pid)
  await round(server, path, body)
  return (cpuOf(server.pid) - begun) / perRound
}

/** Milliseconds of the longest `/livez` during a round. */
async function longestWait(server: Server, path: string, body: string): Promise<number> {
  let longest = 0
  await round(server, path, body, async more => {
    while (more()) {
      longest = Math.max(longest, await ask({ ...server, prefix: '' }, 'GET', '/livez'))
      await delay(2)
    }
  })
  return longest
}

/** Opens streams that say one token and then nothing. Resolves when each has its token. */
async function openStreams({ port, prefix, token }: Server, count: number): Promise<Socket[]> {
  const headOf = (body: string) =>
    `POST ${prefix}/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const sockets: Socket[] = []
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const model = models[sockets.length % models.length]
      const head = headOf(chat('stay silent', { stream: true, model }))
      const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(head))
      sockets.push(socket)
      let text = ''
      socket.on('error', reject).on('data', bytes => {
        text += bytes.toString('latin1')
        if (text.includes('data: {')) resolve()
        else if (!text.startsWith('HTTP/1.1 200')) reject(new Error(text.slice(0, 300)))
      })
    })
  while (sockets.length < count) await Promise.all(Array.from({ length: Math.min(100, count - sockets.length) }, one))
  return sockets
}

try {
  const { enginePort, proxy } = await openBench()
  const config = join(folder, 'paths.yaml')
  writeFileSync(
    config,
    `models:\n${models.map(id => `  - {id: ${id}, engine: remote, url: 'http://127.0.0.1:${enginePort}/v1', concurrency: ${perModel}, tasks: [std/chat-completion, std/embeddings]}\n`).join('')}`,
  )
  const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: join(folder, 'data') }
  const before = [...nodeFlags, 'dist/main.cjs']
  const args = [...before, 'serve', '--config', config, '--listen', '127.0.0.1:0']
  const { pid, match } = await start(process.execPath, args, /(http:\/\/127\.0\.0\.1:\d+)/, env)
  const port = Number(new URL(match[1]!).port)
  const root = readFileSync(join(folder, 'data', 'root-token'), 'utf8').trim()
  const token = await limitedToken(port, root, process.execPath, before, env)
  const infer: Server = { pid, port, prefix: '/std/v1', token }
  const bare: Server = { pid: proxy.pid, port: Number(proxy.match[1]), prefix: '/v1', token: '-' }

  for (const [name, [path, body]] of rounds > 0 ? Object.entries(paths) : []) {
    const found: { infer: number; bare: number; longest: number }[] = []
    for (let at = -2; at < rounds; at++) {
      const [own, other] = [await costOf(infer, `/${path}`, body), await costOf(bare, `/${path}`, body)]
      if (at >= 0) found.push({ infer: own, bare: other, longest: await longestWait(infer, `/${path}`, body) })
    }
    const of = (key: 'infer' | 'bare' | 'longest') => median(found.map(one => one[key]))
    console.log(
      `${name}: ${of('infer').toFixed(2)} ms of processor time, the minimal proxy ${of('bare').toFixed(2)}: ` +
        `${median(found.map(one => one.infer / one.bare)).toFixed(2)} x; /livez at most ${of('longest').toFixed(1)} ms (median of ${rounds} rounds)`,
    )
  }

  const empty = rssOf(pid)
  const sockets = await openStreams(infer, streams)
  const full = rssOf(pid)
  const begun = cpuOf(pid)
  let longest = 0
  const until = performance.now() + 20_000
  while (performance.now() < until) {
    longest = Math.max(longest, await ask({ ...infer, prefix: '' }, 'GET', '/livez'))
    await delay(20)
  }
  console.log(
    `${streams} idle streams: ${(((full - empty) * 1024) / streams).toFixed(1)} kB each (${full.toFixed(0)} MB in all), ` +
      `${((cpuOf(pid) - begun) / 200).toFixed(1)} % of a core; /livez at most ${longest.toFixed(1)} ms in 20 s`,
  )
  for (const socket of sockets) socket.destroy()
} finally {
  closeBench()
}
