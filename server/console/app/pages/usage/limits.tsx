import { useState } from 'react'
import { api, at, refresh, type Schema, useAnswer, type useOwnUse, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { Budget, OrganizationBudget } from '../../components/budget.tsx'
import { Button } from '../../components/button.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { optionsOf, SelectField, TextField } from '../../components/fields.tsx'
import { formNumber, formText } from '../../components/form-text.ts'
import { costText, countText, sizeText } from '../../components/format.ts'
import { limitState, percentUsed } from '../../components/limit-use.ts'
import { Meter } from '../../components/meter.tsx'
import { Facts, Queried, Section } from '../../components/page.tsx'
import { usageText } from '../../text/usage.ts'

const text = usageText.limits

type LimitUse = Schema<'LimitUse'>

const amount = (limit: LimitUse, value: number): string =>
  limit.name === 'stored_bytes' ? sizeText(value) : countText(value)

function LimitMeter({ limit }: { limit: LimitUse }) {
  const { name, limit: whole, remaining } = limit
  const used = whole - remaining
  return (
    <Meter
      label={text.names[name]}
      value={text.used(amount(limit, used), amount(limit, whole), percentUsed(used, whole))}
      parts={[{ name: text.names[name], amount: used }]}
      whole={whole}
      state={limitState(used, whole)}
    />
  )
}

/** Every limit that applies to the session, what is used of it, and what was spent this month. */
export function LimitsLeft({ query }: { query: ReturnType<typeof useOwnUse> }) {
  return (
    <Section title={text.title}>
      <Queried query={query}>
        {({ limits, spend }) => (
          <div className="grid gap-4 md:grid-cols-2">
            {(['organization', 'token'] as const).map(of => (
              <div key={of} className="bg-surface border-line space-y-3 rounded-lg border p-4">
                <h3 className="font-medium">{text[of]}</h3>
                <Budget spend={spend[of]} currency={spend.currency} />
                {limits
                  .filter(limit => limit.limit_of === of)
                  .map(limit => (
                    <LimitMeter key={limit.name} limit={limit} />
                  ))}
              </div>
            ))}
          </div>
        )}
      </Queried>
    </Section>
  )
}

const own = usageText.own

type Answer = Schema<'OrganizationLimitsAnswer'>
type Name = keyof typeof own.names

const names = Object.keys(own.names) as Name[]

const hints = { stored_bytes: own.bytesHint, monthly_spend_limit: own.spendHint }

const shown = (name: Name, value: number | null, currency: string): string =>
  value === null
    ? own.none
    : name === 'stored_bytes'
      ? sizeText(value)
      : name === 'monthly_spend_limit'
        ? costText(value, currency)
        : countText(value)

/** The limits that apply to an organization. The owner of the machine may change them. */
export function OrganizationLimits({ organization, name }: { organization: string; name: string }) {
  const { ownerCan, session } = useSession()
  const [changing, setChanging] = useState(false)
  const query = useAnswer(['usage', 'limits', organization], () =>
    api.GET('/api/organizations/{organization}/limits', at({ organization })),
  )
  return (
    <Section
      title={own.title(name)}
      actions={
        ownerCan('admin:write') && query.data && <Button small onClick={() => setChanging(true)} label={own.change} />
      }
    >
      <Queried query={query}>
        {answer => (
          <div className="bg-surface border-line rounded-lg border p-4">
            {/* What the own organization has spent stands above. */}
            {organization !== session.organization.id && (
              <div className="mb-4">
                <OrganizationBudget organization={organization} />
              </div>
            )}
            <p className="text-muted mb-2">{own.plan(answer.plan)}</p>
            <Facts
              rows={[
                ...names.map(one => [own.names[one], shown(one, answer.effective[one], session.currency)] as const),
                [own.local, own.localOptions[answer.effective.local_only ? 'yes' : 'no']] as const,
              ]}
              className="grid gap-x-8 gap-y-1 tabular-nums md:grid-cols-2"
              rowClass="flex justify-between gap-3"
            />
            {changing && (
              <ChangeLimits organization={organization} name={name} answer={answer} close={() => setChanging(false)} />
            )}
          </div>
        )}
      </Queried>
    </Section>
  )
}

interface ChangeLimitsProps {
  organization: string
  name: string
  answer: Answer
  close: () => void
}

function ChangeLimits({ organization, name, answer, close }: ChangeLimitsProps) {
  const { session } = useSession()
  const save = async (form: FormData) => {
    const local = formText(form, 'local_only')
    const body: Schema<'OrganizationLimitsChange'> = {
      ...Object.fromEntries(names.map(one => [one, formNumber(form, one)])),
      local_only: local === 'plan' ? null : local === 'yes',
    }
    await api.PATCH('/api/organizations/{organization}/limits', { params: { path: { organization } }, body })
    void refresh('usage')
    announce('good', own.saved)
    close()
  }
  return (
    <FormDialog title={own.dialog(name)} action={own.save} save={save} close={close}>
      {faultOf => (
        <>
          {names.map(one => (
            <TextField
              key={one}
              label={own.names[one]}
              name={one}
              type="number"
              min={0}
              step={one === 'monthly_spend_limit' ? 'any' : 1}
              defaultValue={answer.limits[one] ?? ''}
              placeholder={shown(one, answer.effective[one], session.currency)}
              hint={hints[one as keyof typeof hints] ?? own.hint}
              error={faultOf(one)}
            />
          ))}
          <SelectField
            label={own.local}
            name="local_only"
            defaultValue={answer.limits.local_only === null ? 'plan' : answer.limits.local_only ? 'yes' : 'no'}
            options={optionsOf(own.localOptions)}
          />
        </>
      )}
    </FormDialog>
  )
}
