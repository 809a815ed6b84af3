import { useEffect, useRef, useState } from 'react'

/** Records from the microphone; `take` gets the recording as a file. */
export function useRecorder(take: (file: File) => void) {
  const recorder = useRef<MediaRecorder>(undefined)
  const isAsking = useRef(false)
  const isLeft = useRef(false)
  const [seconds, setSeconds] = useState<number>()
  const [failed, setFailed] = useState(false)
  const isRecording = seconds !== undefined

  useEffect(() => {
    if (!isRecording) return
    const timer = setInterval(() => setSeconds(now => (now ?? 0) + 1), 1_000)
    return () => clearInterval(timer)
  }, [isRecording])
  // Leaving the page ends the recording and frees the microphone.
  useEffect(() => {
    isLeft.current = false
    return () => {
      isLeft.current = true
      release(recorder.current?.stream)
    }
  }, [])

  async function record(): Promise<void> {
    if (isAsking.current) return
    isAsking.current = true
    setFailed(false)
    let stream: MediaStream | undefined
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      if (isLeft.current) return release(stream)
      const own = (recorder.current = new MediaRecorder(stream))
      const parts: Blob[] = []
      own.addEventListener('dataavailable', ({ data }) => void parts.push(data))
      own.addEventListener('stop', () => {
        release(own.stream)
        // Nobody waits for it any more.
        if (isLeft.current) return
        setSeconds(undefined)
        const type = own.mimeType.split(';')[0]!
        take(new File(parts, `recording.${type.endsWith('mp4') ? 'm4a' : type.slice(type.indexOf('/') + 1)}`, { type }))
      })
      own.start()
      setSeconds(0)
    } catch {
      release(stream)
      setFailed(true)
    } finally {
      isAsking.current = false
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

function release(stream: MediaStream | undefined): void {
  for (const track of stream?.getTracks() ?? []) track.stop()
}
