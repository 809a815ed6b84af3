import { Mic, Square } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { playgroundText as text } from '../../../text/playground.ts'

/** Records from the microphone, and gives the recording as a file. */
export function Microphone({ take }: { take: (file: File) => void }) {
  const recorder = useRef<MediaRecorder>(undefined)
  const [seconds, setSeconds] = useState<number>()
  const [failed, setFailed] = useState(false)
  const recording = seconds !== undefined

  useEffect(() => {
    if (!recording) return
    const timer = setInterval(() => setSeconds(now => (now ?? 0) + 1), 1_000)
    return () => clearInterval(timer)
  }, [recording])
  // Leaving the page ends the recording and frees the microphone.
  useEffect(() => () => release(recorder.current), [])

  async function record(): Promise<void> {
    setFailed(false)
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      const own = (recorder.current = new MediaRecorder(stream))
      const parts: Blob[] = []
      own.addEventListener('dataavailable', ({ data }) => void parts.push(data))
      own.addEventListener('stop', () => {
        release(own)
        setSeconds(undefined)
        const type = own.mimeType.split(';')[0]!
        take(new File(parts, `recording.${type.endsWith('mp4') ? 'm4a' : type.slice(type.indexOf('/') + 1)}`, { type }))
      })
      own.start()
      setSeconds(0)
    } catch {
      setFailed(true)
    }
  }

  return (
    <>
      {recording ? (
        <Button danger icon={Square} onClick={() => recorder.current?.stop()}>
          {text.stopRecording}
        </Button>
      ) : (
        <Button icon={Mic} onClick={() => void record()}>
          {text.record}
        </Button>
      )}
      {recording && <span className="text-muted tabular-nums">{text.recording(seconds)}</span>}
      {failed && (
        <p role="alert" className="text-bad w-full text-xs">
          {text.noMicrophone}
        </p>
      )}
    </>
  )
}

function release(recorder: MediaRecorder | undefined): void {
  for (const track of recorder?.stream.getTracks() ?? []) track.stop()
}
