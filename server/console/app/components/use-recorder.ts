import { useEffect, useRef, useState } from 'react'

/** Records from the microphone; `take` gets the recording as a file. */
export function useRecorder(take: (file: File) => void) {
  const recorder = useRef<MediaRecorder>(undefined)
  const [seconds, setSeconds] = useState<number>()
  const [failed, setFailed] = useState(false)
  const isRecording = seconds !== undefined

  useEffect(() => {
    if (!isRecording) return
    const timer = setInterval(() => setSeconds(now => (now ?? 0) + 1), 1_000)
    return () => clearInterval(timer)
  }, [isRecording])
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

  return {
    /** Since the recording began; undefined while there is none. */
    seconds,
    /** Whether the microphone could not be used: browsers do not offer it to this page, or the person refused. */
    failed,
    record: (): void => void record(),
    /** Ends the recording, which is taken. */
    stop: (): void => recorder.current?.stop(),
  }
}

function release(recorder: MediaRecorder | undefined): void {
  for (const track of recorder?.stream.getTracks() ?? []) track.stop()
}
