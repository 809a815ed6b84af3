import { open } from 'node:fs/promises'
import { type Task, tasksBy } from '../schemas/task.ts'

/** First bytes of a model in the format of whisper.cpp, little-endian. Old language models have them too. */
const magic = 0x67676d6c
/** Vocabularies of all Whisper models. The smallest is that of models for English only, which translate nothing. */
const vocabularies = { english: 51_864, largest: 51_866 }

/** Returns the tasks of a Whisper model in the format of whisper.cpp; null for any other file. */
export async function whisperTasks(path: string): Promise<Task[] | null> {
  const file = await open(path).catch(() => null)
  if (!file) return null
  try {
    const head = Buffer.alloc(8)
    const { bytesRead } = await file.read(head, 0, head.length, 0)
    if (bytesRead < head.length || head.readUInt32LE() !== magic) return null
    const vocabulary = head.readInt32LE(4)
    if (vocabulary < vocabularies.english || vocabulary > vocabularies.largest) return null
    return vocabulary === vocabularies.english ? tasksBy('transcribe') : tasksBy('transcribe', 'translate')
  } finally {
    await file.close()
  }
}
