import { extname } from 'node:path'
import { type Command, Option } from '@commander-js/extra-typings'
import { type SpeechFormat, speechFormats, speechForms } from '../../core/schemas/speech-format.ts'
import { promptOrPiped } from '../chat/prompt.ts'
import { openClient } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import { untilLoaded } from '../client/refusal.ts'
import { checkReadable, mediaOf, uploadMedia } from '../generation/media.ts'
import { type OutputTarget, outputTargetOf } from '../generation/output-target.ts'
import { saveStream } from '../generation/save-files.ts'
import { chooseModel } from '../models/status.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readNumber, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer speak [text…]`: synthesizes speech into a file, or to standard output in a pipe. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Synthesizes speech from a text and saves it. Prints the path of the file; in a pipe, or with --out -, writes the audio to standard output while it is made. Nothing is played.',
    )
    .argument('[text...]', 'the text; default: standard input')
    .option('--model <id>', 'the model; default: the first one that speaks')
    .option('--voice <name>', 'a voice of the model; default: its first voice')
    .option('-o, --out <file>', 'the file or folder to save it to, or - for standard output')
    .addOption(
      new Option('--format <name>', 'file format; default: that of the file name, else mp3').choices(speechFormats),
    )
    .option('--speed <number>', 'speed, 0.25 to 4', readNumber(0.25, 4))
    .option('--language <name>', 'language of the text, for models that need it')
    .option('--instructions <text>', 'how it should sound, for models that follow it')
    .option('--reference <file>', 'a recording of the voice, for models that clone voices; a file or a URL')
    .option('--reference-text <text>', 'the words of the recording')
    .action(async (words, options) => {
      const { out, json, reference, referenceText } = options
      if (reference !== undefined) checkReadable('recording', reference)
      else if (referenceText !== undefined) throw usageFailure('--reference-text is for --reference <file>. Add it.')
      const input = await promptOrPiped(words, terminal)
      if (input === '') throw usageFailure('There is no text. Write: infer speak "Hello!", or pipe it in.')
      const target: OutputTarget =
        out === undefined && !terminal.isTerminal && !json ? { kind: 'stdout' } : outputTargetOf(out)
      if (target.kind === 'stdout' && json)
        throw usageFailure('--out - writes the audio. Remove --json, or name a file.')
      const format = formatFor(target, options.format)
      const client = openClient(options.dataDir)
      const does = 'synthesizes speech'
      const model = await chooseModel(terminal, client, { task: commandTasks.speak, requested: options.model, does })
      const media = reference === undefined ? undefined : mediaOf('audio', reference, { flag: '--reference' })
      const reference_audio = typeof media === 'object' ? await uploadMedia(client, media, terminal) : media
      const { voice, speed, language, instructions } = options
      const body = {
        model,
        input,
        response_format: format,
        voice,
        speed,
        language,
        instructions,
        reference_audio,
        reference_text: referenceText,
      }
      await interruptible(terminal, async signal => {
        const { bytes, headers } = await untilLoaded(
          () => client.raw({ method: 'POST', path: '/std/v1/audio/speech', body, signal }),
          { signal, onWait: () => terminal.waiting(`Loading ${model}…`) },
        )
        terminal.progress('')
        let size = 0
        async function* counted() {
          for await (const piece of bytes) {
            size += piece.length
            yield piece
          }
        }
        const extension = `.${speechForms[format].ending}`
        const path = await saveStream(terminal, counted(), target, { topic: input, extension, signal })
        if (path === undefined) return
        if (json)
          terminal.json({
            model,
            saved: path,
            bytes: size,
            content_type: headers['content-type'] ?? null,
            job_id: headers['x-job-id'] ?? null,
          })
        else terminal.print(path)
      })
    })
  withExamples(command, [
    ['infer speak "Good morning!"', 'an MP3 file in this folder'],
    ['infer speak "Good morning!" --voice alto --out morning.wav', 'with a voice, as WAV'],
    ['cat letter.txt | infer speak | ffplay -nodisp -autoexit -', 'hear a text'],
  ])
}

const endings: Record<string, SpeechFormat> = {
  ...Object.fromEntries(speechFormats.map(format => [`.${speechForms[format].ending}`, format])),
  '.opus': 'opus',
}

/** Returns the format from the file name or the flag. Throws usage when they differ. */
function formatFor(target: OutputTarget, flag: SpeechFormat | undefined): SpeechFormat {
  const ending = target.kind === 'file' ? extname(target.path).toLowerCase() : ''
  const named = endings[ending]
  if (named !== undefined && flag !== undefined && named !== flag)
    throw usageFailure(`--out *${ending} means ${named}, but --format is ${flag}. Remove one of them.`)
  return flag ?? named ?? 'mp3'
}
