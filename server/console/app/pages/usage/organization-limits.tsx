import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { ApiFailure } from '../../api/failure.ts'
import { useSession } from '../../api/session.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { formNumber } from '../../components/form-text.ts'
import { costText, countText, sizeText } from '../../components/format.ts'
import { Failed, Queried, Section } from '../../components/page.tsx'
import { shellText } from '../../text/shell.ts'
import { usageText } from '../../text/usage.ts'

const text = usageText.own

type Answer = Schema<'OrganizationLimitsAnswer'>
type Name = keyof typeof text.names

const names = Object.keys(text.names) as Name[]

const hints = { stored_bytes: text.bytesHint, monthly_spend_limit: text.spendHint }

const shown = (name: Name, value: number | null): string =>
  value === null
    ? text.none
    : name === 'stored_bytes'
      ? sizeText(value)
      : name === 'monthly_spend_limit'
        ? costText(value)
        : countText(value)

/** The limits that apply to an organization. The owner of the machine may change them. */
export function OrganizationLimits({ organization, name }: { organization: string; name: string }) {
  const { session, can } = useSession()
  const [changing, setChanging] = useState(false)
  const query = useQuery({
    queryKey: ['usage', 'limits', organization],
    queryFn: () => dataOf(api.GET('/api/organizations/{organization}/limits', { params: { path: { organization } } })),
  })
  const mayChange = session.owns_machine && can('admin:write')
  return (
    <Section
      title={text.title(name)}
      actions={
        mayChange &&
        query.data && (
          <Button small onClick={() => setChanging(true)}>
            {text.change}
          </Button>
        )
      }
    >
      <Queried query={query}>
        {answer => (
          <div className="bg-surface border-line rounded-lg border p-4">
            <p className="text-muted mb-2">{text.plan(answer.plan)}</p>
            <dl className="grid gap-x-8 gap-y-1 md:grid-cols-2">
              {names.map(one => (
                <div key={one} className="flex justify-between gap-3">
                  <dt className="text-muted">{text.names[one]}</dt>
                  <dd className="tabular-nums">{shown(one, answer.effective[one])}</dd>
                </div>
              ))}
            </dl>
            {changing && (
              <ChangeLimits organization={organization} name={name} answer={answer} close={() => setChanging(false)} />
            )}
          </div>
        )}
      </Queried>
    </Section>
  )
}

function ChangeLimits({
  organization,
  name,
  answer,
  close,
}: {
  organization: string
  name: string
  answer: Answer
  close: () => void
}) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { mutate, error, isPending } = useMutation({
    mutationFn: (body: Schema<'OrganizationLimitsChange'>) =>
      dataOf(api.PATCH('/api/organizations/{organization}/limits', { params: { path: { organization } }, body })),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ['usage'] })
      announce('good', text.saved)
      close()
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    mutate(Object.fromEntries(names.map(one => [one, formNumber(form, one)])))
  }
  const fault = error instanceof ApiFailure ? error.param : undefined
  return (
    <Dialog title={text.dialog(name)} close={close}>
      <form onSubmit={submit} className="space-y-4">
        {error && !names.includes(fault as Name) && <Failed failure={error} />}
        {names.map(one => (
          <TextField
            key={one}
            label={text.names[one]}
            name={one}
            type="number"
            min={0}
            step={one === 'monthly_spend_limit' ? 'any' : 1}
            defaultValue={answer.limits[one] ?? ''}
            placeholder={shown(one, answer.effective[one])}
            hint={hints[one as keyof typeof hints] ?? text.hint}
            error={fault === one ? error!.message : undefined}
          />
        ))}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{shellText.cancel}</Button>
          <Button primary type="submit" busy={isPending}>
            {text.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
