import { FormDialog } from '../../components/dialog.tsx'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { webhooksText as text } from '../../text/webhooks.ts'

interface RotateSecretProps {
  /** What the secret signs. */
  name: string
  /** Creates a new secret. The previous one signs beside it for this many seconds. */
  rotate: (body: { overlap_seconds: number }) => Promise<void>
  close: () => void
}

/** Asks for how long the previous secret signs beside a new one. */
export const RotateSecret = ({ name, rotate, close }: RotateSecretProps) => (
  <FormDialog
    title={text.rotateTitle(name)}
    action={text.rotateAct}
    about={<p>{text.rotateText}</p>}
    close={close}
    save={async form => {
      await rotate({ overlap_seconds: Number(form.get('overlap')) })
      close()
    }}
  >
    {() => <SelectField label={text.overlap} name="overlap" defaultValue="86400" options={optionsOf(text.overlaps)} />}
  </FormDialog>
)
