import { Brush, Mic, Square, Upload, X } from 'lucide-react'
import { useRef, useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClass, FormField } from '../../../components/fields.tsx'
import { Media } from '../../../components/result/media.tsx'
import { type Medium } from '../../../components/result/result-facts.ts'
import { useRecorder } from '../../../components/use-recorder.ts'
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
  const { seconds, failed, record, stop } = useRecorder(take)
  return (
    <>
      {seconds === undefined ? (
        <Button icon={Mic} onClick={record} label={text.record} />
      ) : (
        <>
          <Button danger icon={Square} onClick={stop} label={text.stopRecording} />
          <span className="text-muted tabular-nums">{text.recording(seconds)}</span>
        </>
      )}
      {failed && (
        <p role="alert" className="text-bad w-full text-xs">
          {text.noMicrophone}
        </p>
      )}
    </>
  )
}
