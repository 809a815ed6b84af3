import { execa } from 'execa'
import { z } from 'zod'
import { hostEnvironment } from '../../../core/config.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { longestSpeechInput } from '../../../core/schemas/speech-format.ts'
import { engineWavSamples, wavHead } from '../../../core/tasks/wav.ts'
import { checkListenAddress, type EngineSettings, type Handler, listModel, openHttp, openStopSignal } from '../http.ts'
import { parsedCall } from '../parsed-call.ts'
import { chooseVoice, parseEspeakVoices, variantsIn } from './voices.ts'

export interface EspeakEngineSettings extends EngineSettings {
  program: string
}

/** Words per minute at speed 1. */
const wordsPerMinute = 175
/** espeak-ng speaks at least 80 words per minute. */
const slowest = 0.46

const Call = z.object({
  input: z.string().min(1).max(longestSpeechInput),
  voice: z.string().min(1).max(64).optional(),
  language: z.string().max(16).optional(),
  response_format: z.enum(['wav', 'pcm']).default('wav'),
  speed: z.number().min(slowest).max(4).default(1),
})

/**
 * Serves espeak-ng as OpenAI's speech route until SIGTERM or SIGINT: one process per request. Throws Failure
 * `invalid_value` if it cannot listen, and `worker_error` if espeak-ng cannot be started.
 */
export async function runEspeakEngine(settings: EspeakEngineSettings, { log }: { log: Log }): Promise<void> {
  const { id, program } = settings
  checkListenAddress(settings)
  using stop = openStopSignal()
  const list = async (option: string) => (await runEspeak(program, [option], '', stop.signal)).toString('utf8')
  const voices = parseEspeakVoices(await list('--voices'))
  const variants = variantsIn(await list('--voices=variant'))
  const models = listModel(id, 'espeak-ng')

  const synthesize: Handler = async (body, reply) => {
    const call = parsedCall(Call, body)
    const { input, response_format, speed } = call
    const chosen = chooseVoice(call, voices, variants)
    if ('fault' in chosen) throw invalid('voice', chosen.fault)
    const wordRate = String(Math.round(wordsPerMinute * speed))
    const options = ['--stdin', '--stdout', '-b', '1', '-v', chosen.voice, '-s', wordRate]
    const wav = await runEspeak(program, options, input, reply.signal)
    // Its header leaves the length of the samples open.
    const facts = engineWavSamples(wav.subarray(0, 4096))
    if (!facts || wav.length === facts.from) throw invalid('input', "'input' has nothing that can be spoken.")
    const samples = wav.subarray(facts.from)
    const head = response_format === 'wav' ? wavHead(facts.rate, samples.length) : Buffer.alloc(0)
    const type = response_format === 'wav' ? 'audio/wav' : `audio/pcm;rate=${facts.rate}`
    const answer = reply.binary(type, head.length + samples.length)
    await answer.write(Buffer.concat([head, samples]))
    answer.end()
  }

  const server = await openHttp({
    ...settings,
    log,
    health: () => ({ status: 'ok' }),
    handlers: () => ({
      'GET /v1/models': models,
      'GET /v1/audio/voices': (_body, reply) => reply.json({ voices }),
      'POST /v1/audio/speech': synthesize,
    }),
  })
  log.info('The engine is ready', { model: id, address: server.address })
  await stop.stopped
  await server.close()
}

/** Maximum bytes of the audio of one request: 25 minutes. The text is limited too, so this is only reached by a fault. */
const maxAudio = 64 << 20
/**
 * Runs espeak-ng and resolves with what it writes to standard output. The text goes to its standard input and never into
 * its arguments. Rejects with Failure `worker_error` if it fails, and with the reason of the signal after killing it.
 */
async function runEspeak(program: string, args: readonly string[], text: string, signal: AbortSignal) {
  signal.throwIfAborted()
  const {
    exitCode,
    signal: ended,
    stdout,
    stderr,
    isMaxBuffer,
    cause,
  } = await execa(program, args, {
    input: text,
    encoding: 'buffer',
    // Not the other variables of the engine, one of which is its key.
    env: { PATH: hostEnvironment().PATH, LANG: 'C.UTF-8' },
    extendEnv: false,
    cancelSignal: signal,
    killSignal: 'SIGKILL',
    maxBuffer: maxAudio,
    reject: false,
  })
  signal.throwIfAborted()
  const failed = (why: string) => new Failure('worker_error', `${program} ${why}`, { cause })
  if (isMaxBuffer) throw failed(`wrote more than ${maxAudio >> 20} MiB of audio for one text.`)
  if (exitCode === 0) return Buffer.from(stdout.buffer, stdout.byteOffset, stdout.byteLength)
  const how = exitCode ?? ended
  if (how !== undefined) throw failed(`ended with ${how}: ${Buffer.from(stderr).toString().trim().slice(-500)}`)
  const why = cause instanceof Error ? cause.message : String(cause)
  throw failed(`cannot be started: ${why}. Install it (Debian, Ubuntu: sudo apt install espeak-ng).`)
}
