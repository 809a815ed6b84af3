import { useMutation } from '@tanstack/react-query'
import { LoaderCircle, Mic, Square } from 'lucide-react'
import { useEffect } from 'react'
import { send } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { IconButton } from '../../../components/button.tsx'
import { useRecorder } from '../../../components/use-recorder.ts'
import { playgroundText } from '../../../text/playground.ts'
import { voiceText as text } from '../../../text/voice.ts'

interface DictationProps {
  /** The model that transcribes. */
  model: string
  /** Gets what was said. */
  take: (words: string) => void
}

/** Records what a person says, and has it transcribed. */
export function Dictation({ model, take }: DictationProps) {
  const transcription = useMutation({
    mutationFn: (file: File) => transcribed(file, model),
    onSuccess: words => (words === '' ? announce('bad', text.nothingSaid) : take(words)),
    onError: failure => announce('bad', failure.message),
  })
  const { seconds, failed, record, stop } = useRecorder(transcription.mutate)
  useEffect(() => {
    if (failed) announce('bad', playgroundText.noMicrophone)
  }, [failed])
  if (transcription.isPending) return <IconButton disabled icon={LoaderCircle} label={text.transcribing} />
  if (seconds === undefined) return <IconButton icon={Mic} label={text.dictate} onClick={record} />
  return (
    <>
      <span className="text-muted self-center text-xs tabular-nums">{playgroundText.recording(seconds)}</span>
      <IconButton danger icon={Square} label={playgroundText.stopRecording} onClick={stop} />
    </>
  )
}

async function transcribed(file: File, model: string): Promise<string> {
  const body = new FormData()
  body.set('model', model)
  body.set('file', file)
  const answer = await send('/std/v1/audio/transcriptions', { method: 'POST', body })
  return ((await answer.json()) as { text: string }).text.trim()
}
