import { Brush, Mic, Square, Upload, X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClass, FormField } from '../../../components/fields.tsx'
import { Media } from '../../../components/result/media.tsx'
import { type Medium } from '../../../components/result/result-facts.ts'
import { playgroundText as text } from '../../../text/playground.ts'
import { FileInput, previewOf, useUpload } from './files.tsx'
import { MaskEditor } from './mask-editor.tsx'

const kindOf = (name: string): Medium =>
  name.startsWith('video') ? 'video' : /audio|^url$/.test(name) ? 'audio' : 'image'

interface MediaFieldProps {
  name: string
  /** Where the name does not say it. */
  medium: Medium | undefined
  label: string
  hint: string
  error: string | undefined
  value: string
  change: (value: string) => void
  /** For a mask: where its image can be loaded. */
  image: string | undefined
  drawn: () => void
}

/** An image, a video or audio: chosen, recorded or drawn here, or named by its address or id. */
export function MediaField({ name, medium, label, hint, error, value, change, image, drawn }: MediaFieldProps) {
  const kind = medium ?? kindOf(name)
  const shown = previewOf(value)
  const input = useRef<HTMLInputElement>(null)
  const [drawing, setDrawing] = useState(false)
  const { mutate, isPending, error: refused } = useUpload(change)
  const isMask = name.startsWith('mask')
  return (
    <FormField label={label} hint={hint} error={error ?? refused?.message}>
      {control => (
        <div className="space-y-2">
          <div className="flex flex-wrap items-center gap-2">
            <Button
              icon={Upload}
              busy={isPending}
              onClick={() => input.current!.click()}
              label={isPending ? text.uploading : value === '' ? text.chooseFile : text.chooseAnother}
            />
            <FileInput ref={input} kind={kind} label={label} take={mutate} />
            {kind === 'audio' && <Microphone take={mutate} />}
            {isMask && (
              <Button
                icon={Brush}
                disabled={image === undefined}
                onClick={() => setDrawing(true)}
                label={text.drawMask}
              />
            )}
          </div>
          {isMask && image === undefined && <p className="text-muted text-xs">{text.maskFirst}</p>}
          <div className="flex gap-1">
            <input
              {...control}
              value={value}
              placeholder={text.orAddress}
              spellCheck={false}
              onChange={event => change(event.target.value)}
              className={`${controlClass} font-mono text-xs`}
            />
            {value !== '' && <IconButton icon={X} label={text.clear} onClick={() => change('')} />}
          </div>
          {shown !== undefined && (
            <Media
              kind={kind}
              url={shown}
              label={text.preview(label)}
              className="border-line max-h-48 max-w-full rounded-md border"
            />
          )}
          {drawing && image !== undefined && (
            <MaskEditor
              image={image}
              close={() => setDrawing(false)}
              use={file => {
                setDrawing(false)
                drawn()
                mutate(file)
              }}
            />
          )}
        </div>
      )}
    </FormField>
  )
}

/** Records from the microphone, and gives the recording as a file. */
function Microphone({ take }: { take: (file: File) => void }) {
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
        <Button danger icon={Square} onClick={() => recorder.current?.stop()} label={text.stopRecording} />
      ) : (
        <Button icon={Mic} onClick={() => void record()} label={text.record} />
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
