import { useMutation } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SelectField } from '../../components/fields.tsx'
import { Failed, Notice } from '../../components/page.tsx'
import { tokensText as text } from '../../text/organizations.ts'
import { shellText } from '../../text/shell.ts'

/** Asks how long the old secret works beside the new one. */
export function RotateDialog({
  name,
  own,
  rotate,
  close,
}: {
  name: string
  /** The session stands for this token, and ends with its old secret. */
  own: boolean
  rotate: (overlapSeconds: number) => Promise<unknown>
  close: () => void
}) {
  const { mutate, error, isPending } = useMutation({ mutationFn: rotate })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    mutate(Number(new FormData(event.currentTarget).get('overlap')))
  }
  return (
    <Dialog title={text.rotateTitle(name)} close={close}>
      <form onSubmit={submit} className="space-y-4">
        <p>{text.rotateText}</p>
        {own && <Notice kind="warning">{text.rotateOwn}</Notice>}
        {error && <Failed failure={error} />}
        <SelectField
          label={text.overlap}
          name="overlap"
          options={Object.entries(text.overlaps).map(([value, name]) => ({ value, name }))}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{shellText.cancel}</Button>
          <Button primary type="submit" busy={isPending}>
            {text.rotateAct}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
