import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toFile } from 'openai'

/** The folder of the models that `install-voices.sh` makes. */
export const voiceModels = join(process.env.INFER_REAL_VOICES ?? '', 'models')

/** The audio of `install-voices.sh`, and what it says. */
export const speech = (): Buffer => readFileSync(join(voiceModels, 'speech.wav'))
export const speechFile = (): Promise<File> => toFile(speech(), 'speech.wav')
export const spokenText =
  'The weather is nice today, and the children are playing in the garden. Water boils at a high temperature.'

export const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z]+/g) ?? []
