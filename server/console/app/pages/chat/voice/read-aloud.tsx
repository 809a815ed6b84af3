import { LoaderCircle, Square, Volume2 } from 'lucide-react'
import { IconButton } from '../../../components/button.tsx'
import { voiceText as text } from '../../../text/voice.ts'
import { apart } from '../message/chunks.ts'
import type { Message } from '../message/message.ts'
import { useReading } from './reading.ts'

/** Reads an answer aloud; `model` is the one that speaks. */
export function ReadAloud({ message, model }: { message: Message; model: string }) {
  const { state, read, stop } = useReading(model)
  if (state === 'idle') return <IconButton icon={Volume2} label={text.read} onClick={() => read(apart(message).text)} />
  if (state === 'preparing') return <IconButton icon={LoaderCircle} label={text.preparing} onClick={stop} />
  return <IconButton icon={Square} label={text.stopReading} onClick={stop} />
}
