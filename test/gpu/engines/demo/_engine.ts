import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll } from 'vitest'
import type { GenerationTask } from '../../../../core/schemas/task.ts'
import {
  EngineMessage,
  type GenerationCall,
  type GenerationInputs,
} from '../../../../core/tasks/protocols/generation-call.ts'
import { builtProgram } from '../../../_fixtures.ts'

const run = promisify(execFile)
const root = mkdtempSync(join(tmpdir(), 'infer-demo-'))
const stopping: (() => Promise<unknown>)[] = []
afterAll(async () => {
  await Promise.all(stopping.map(stop => stop()))
  rmSync(root, { recursive: true, force: true })
})

/** An empty folder that is removed after the test file. */
export const newFolder = (): string => mkdtempSync(join(root, 'work-'))

export type Short = Exclude<GenerationTask, never> extends `slug/${infer Name}` ? Name : never

/** A call as infer sends it, with every field. */
export function callOf(task: Short, inputs: Partial<GenerationInputs> = {}, folder = newFolder()): GenerationCall {
  const moving = task.endsWith('video') || task === 'video-interpolation'
  return {
    task: `slug/${task}`,
    model: 'toy',
    folder,
    inputs: {
      prompt: 'a cat on a bicycle',
      negative_prompt: null,
      seed: 42,
      width: 320,
      height: 192,
      num_images: 1,
      num_frames: moving ? 8 : 1,
      fps: 8,
      num_inference_steps: 4,
      guidance_scale: 5,
      strength: 0.6,
      output_format: moving ? 'mp4' : 'png',
      image: null,
      mask: null,
      video: null,
      audio: null,
      extra: {},
      ...inputs,
    },
  }
}

/** The built engine, started as infer starts it: a process that listens on a socket. */
export async function startDemo(flags: string[] = ['--step-ms', '0'], env: Record<string, string> = {}) {
  const socket = join(newFolder(), 's')
  const child = spawn(process.execPath, [builtProgram, 'engine', 'demo', '--id', 'toy', '--socket', socket, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  })
  const log: string[] = []
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  stopping.push(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', line => {
      log.push(line)
      if (line.includes('The engine is ready')) resolve()
    })
    void exited.then(() => reject(new Error(`The engine ended:\n${log.join('\n')}`)))
  })

  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const request = httpRequest({ socketPath: socket, method, path, headers, agent: false })
    request.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return { status: response.statusCode!, type: response.headers['content-type'], text: await text(response) }
  }
  const generate = async (call: unknown) => {
    const { status, type, text } = await ask('POST', '/v1/generate', call)
    if (status !== 200) return { status, messages: [], error: JSON.parse(text).error as Refusal, files: [] as string[] }
    if (type !== 'application/x-ndjson' || !text.endsWith('\n')) throw new Error(`It answered ${type}: ${text}`)
    const messages = text
      .trimEnd()
      .split('\n')
      .map(line => EngineMessage.parse(JSON.parse(line)))
    const last = messages.at(-1)!
    const { folder } = call as GenerationCall
    const files = last.type === 'completed' ? last.files.map(({ name }) => join(folder, name)) : []
    return { status, messages, error: undefined, files }
  }
  /** Begins a call; resolves with a function that disconnects once its first message has arrived. */
  const begin = async (call: unknown) => {
    const request = httpRequest({ socketPath: socket, method: 'POST', path: '/v1/generate', agent: false })
    request.on('error', () => {})
    request.end(JSON.stringify(call))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.on('error', () => {})
    await once(response, 'readable')
    return { response, hangUp: () => request.destroy() }
  }
  const health = async () => JSON.parse((await ask('GET', '/health')).text) as { status: string; running: number }
  return { child, socket, log, exited, ask, generate, begin, health }
}
interface Refusal {
  code: string
  message: string
  param: string | null
}
export type Demo = Awaited<ReturnType<typeof startDemo>>

/** The child processes that still run. */
export function childrenOf(pid: number): string[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return Number(parent) === pid && state !== 'Z' ? [stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))] : []
      } catch {
        return []
      }
    })
}

export interface Probed {
  codec: string
  pixels: string
  width: number
  height: number
  frames: number
  rate: string
  /** Seconds of the video stream, of the audio stream, of the file. */
  duration: number
  sound: { codec: string; duration: number } | undefined
  whole: number
}

/** The result of ffprobe, which decodes the whole video. */
export async function probe(path: string): Promise<Probed> {
  const { stdout } = await run('ffprobe', [
    '-v',
    'error',
    '-count_frames',
    '-show_streams',
    '-show_format',
    '-of',
    'json',
    path,
  ])
  const { streams, format } = JSON.parse(stdout) as { streams: Record<string, string>[]; format: { duration: string } }
  const video = streams.find(stream => stream.codec_type === 'video')!
  const audio = streams.find(stream => stream.codec_type === 'audio')
  return {
    codec: video.codec_name!,
    pixels: video.pix_fmt!,
    width: Number(video.width),
    height: Number(video.height),
    frames: Number(video.nb_read_frames),
    rate: video.r_frame_rate!,
    duration: Number(video.duration),
    sound: audio && { codec: audio.codec_name!, duration: Number(audio.duration) },
    whole: Number(format.duration),
  }
}

/** Every frame of a video in greyscale, one byte a pixel. */
export async function greys(path: string): Promise<Buffer[]> {
  const { width, height } = await probe(path)
  const { stdout } = await run(
    'ffmpeg',
    ['-v', 'error', '-i', path, '-vsync', 'passthrough', '-f', 'rawvideo', '-pix_fmt', 'gray', 'pipe:1'],
    { encoding: 'buffer', maxBuffer: 2 ** 30 },
  )
  return Array.from({ length: stdout.length / (width * height) }, (_, index) =>
    stdout.subarray(index * width * height, (index + 1) * width * height),
  )
}

/** Makes a file with ffmpeg's own sources. */
export async function made(name: string, options: string): Promise<string> {
  const path = join(newFolder(), name)
  await run('ffmpeg', ['-v', 'error', ...options.split(' '), path])
  return path
}
