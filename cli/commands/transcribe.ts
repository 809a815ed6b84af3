import { json as jsonOf } from 'node:stream/consumers'
import { type Command, Option } from '@commander-js/extra-typings'
import {
  audioFile,
  audioInput,
  audioUpload,
  openElapsed,
  printablePieces,
  streamedTranscription,
  wholeTranscription,
} from '../audio/transcription.ts'
import { openClient } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import { outputTargetOf } from '../generation/output-target.ts'
import { saveStream } from '../generation/save-files.ts'
import { chooseModel } from '../models/status.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { announceWait } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'

const formats = ['text', 'srt', 'vtt', 'json', 'verbose', 'speakers'] as const
/** The names of the API. */
const apiFormats: Partial<Record<(typeof formats)[number], string>> = {
  verbose: 'verbose_json',
  speakers: 'diarized_json',
}
const jsonFormats: ReadonlySet<string> = new Set(['json', 'verbose', 'speakers'])

/** `infer transcribe <file>`: turns audio into text, which appears while the engine hears it. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Transcribes an audio file to text on standard output. The text appears while it is transcribed, where the engine can stream it. Subtitles and JSON are printed at the end.',
    )
    .argument('<file>', 'the audio: a file, a URL, or - for standard input')
    .option('--model <id>', 'the model; default: the first one that transcribes')
    .addOption(new Option('--format <name>', 'form of the output; default: text').choices(formats))
    .option('--language <code>', 'language of the audio, such as en; default: detected')
    .option('--prompt <text>', 'words and names that occur in the audio')
    .option('--words', 'the time of each word; with --format verbose')
    .option('--translate', 'translate to English')
    .option('-o, --out <file>', 'the file to save it to; default: standard output')
    .action(async (file, options) => {
      const { language, prompt, words, translate, out, json } = options
      const format = options.format ?? (json ? 'verbose' : 'text')
      if (json && !jsonFormats.has(format)) throw usageFailure(`--json prints JSON. Remove --format ${format}.`)
      if (words && format !== 'verbose') throw usageFailure('--words is for --format verbose, or --json.')
      if (translate && language !== undefined)
        throw usageFailure('--translate detects the language. Remove --language.')
      const target = outputTargetOf(out ?? '-')
      if (target.kind === 'folder') throw usageFailure(`--out ${out} is a folder. Name a file.`)
      const isUrl = /^(https?:|data:)/i.test(file)
      const audio =
        file === '-' ? await announceWait(terminal, audioInput(terminal.stdin)) : isUrl ? undefined : audioFile(file)
      const client = openClient(options.dataDir)
      const model = await chooseModel(terminal, client, {
        task: translate ? 'std/audio-translation' : commandTasks.transcribe,
        requested: options.model,
        does: translate ? 'translates speech' : 'transcribes speech',
      })
      const streams = format === 'text'
      const fields = {
        model,
        response_format: apiFormats[format] ?? (streams ? 'json' : format),
        language,
        prompt,
        stream: streams ? 'true' : undefined,
        'timestamp_granularities[]': words ? 'word' : undefined,
        url: isUrl ? file : undefined,
      }
      const form = audio ? audioUpload(fields, audio) : undefined
      await interruptible(terminal, async signal => {
        const request = () => ({
          method: 'POST' as const,
          path: `/std/v1/audio/${translate ? 'translations' : 'transcriptions'}`,
          // Audio at a URL needs no form.
          ...(form
            ? { headers: form.headers, body: form.body() }
            : {
                body: {
                  ...fields,
                  stream: streams || undefined,
                  'timestamp_granularities[]': undefined,
                  timestamp_granularities: words ? ['word'] : undefined,
                },
              }),
          signal,
        })
        using elapsed = openElapsed(terminal, `Transcribing ${file === '-' ? 'standard input' : file}`)
        const waitOptions = { signal, onWait: () => terminal.waiting(`Loading ${model}…`) }
        const ask = streams ? streamedTranscription : wholeTranscription
        const pieces = elapsed.until(await ask(client, request, waitOptions))
        if (json && target.kind === 'stdout') return terminal.json(await jsonOf(pieces))
        const shown = target.kind === 'stdout' && terminal.isTerminal ? printablePieces(pieces) : pieces
        const path = await saveStream(terminal, shown, target, { topic: '', extension: '', signal })
        if (path !== undefined) terminal.print(path)
      })
    })
  withExamples(command, [
    ['infer transcribe talk.mp3', 'the text, as it is transcribed'],
    ['infer transcribe talk.mp3 --format srt --out talk.srt', 'subtitles'],
    ['infer transcribe talk.mp3 --format verbose --words', 'with the time of each word'],
    ['infer speak "Hello!" --format wav | infer transcribe -', 'from standard input'],
  ])
}
