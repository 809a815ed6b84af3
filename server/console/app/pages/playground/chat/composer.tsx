import { useMutation } from '@tanstack/react-query'
import { ImagePlus, SendHorizontal, Square, X } from 'lucide-react'
import { type FormEvent, type KeyboardEvent, useRef, useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClass } from '../../../components/fields.tsx'
import { Failed } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { previewOf, rememberPreview } from '../form/previews.ts'
import { uploadFile } from '../run/runs.ts'
import type { Message } from './conversation.ts'

const text = playgroundText.chat

/** Where a message is written, with images for models that see. */
export function Composer({
  sees,
  busy,
  send,
  stop,
}: {
  sees: boolean
  busy: boolean
  send: (message: Message) => void
  stop: () => void
}) {
  const [written, write] = useState('')
  const [images, setImages] = useState<readonly string[]>([])
  const input = useRef<HTMLInputElement>(null)
  const upload = useMutation({
    mutationFn: uploadFile,
    onSuccess(id, file) {
      rememberPreview(id, URL.createObjectURL(file))
      setImages(now => [...now, id])
    },
  })
  const empty = written.trim() === '' && images.length === 0

  function submit(event?: FormEvent): void {
    event?.preventDefault()
    if (empty || busy) return
    send({ role: 'user', text: written, ...(images.length > 0 ? { images } : {}) })
    write('')
    setImages([])
  }
  const press = (event: KeyboardEvent) => {
    // While characters are composed, Enter chooses one of them.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }

  return (
    <form onSubmit={submit} className="space-y-2">
      {upload.error && <Failed failure={upload.error} />}
      {images.length > 0 && (
        <div className="flex flex-wrap gap-2">
          {images.map(id => (
            <span key={id} className="relative">
              <img src={previewOf(id)} alt={text.attached} className="border-line h-20 rounded-md border" />
              <IconButton
                icon={X}
                label={text.removeImage}
                className="bg-surface absolute top-0 right-0"
                onClick={() => setImages(images.filter(one => one !== id))}
              />
            </span>
          ))}
        </div>
      )}
      <div className="flex items-end gap-2">
        {sees && (
          <>
            <IconButton
              icon={ImagePlus}
              label={text.attach}
              disabled={upload.isPending}
              onClick={() => input.current!.click()}
            />
            <input
              ref={input}
              type="file"
              hidden
              accept="image/*"
              aria-label={text.attach}
              onChange={event => {
                const [file] = event.target.files ?? []
                if (file) upload.mutate(file)
                event.target.value = ''
              }}
            />
          </>
        )}
        <textarea
          rows={2}
          aria-label={text.message}
          placeholder={text.message}
          title={text.enter}
          value={written}
          onChange={event => write(event.target.value)}
          onKeyDown={press}
          className={`${controlClass} py-1.5`}
        />
        {busy ? (
          // The second press of a double click on the button that stood here does not stop the answer.
          <Button icon={Square} onClick={event => event.detail < 2 && stop()}>
            {text.stop}
          </Button>
        ) : (
          <Button primary type="submit" icon={SendHorizontal} disabled={empty}>
            {text.send}
          </Button>
        )}
      </div>
    </form>
  )
}
