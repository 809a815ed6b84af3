import { type ReactNode, useId, useState } from 'react'
import { type Schema, type Scope, useSession } from '../../api/client.ts'
import { FormDialog } from '../../components/dialog.tsx'
import { Checkbox, nameField, optionsOf, SelectField, TextField } from '../../components/fields.tsx'
import { dateText } from '../../components/format.ts'
import { tokensText } from '../../text/organizations.ts'
import { days, defaultExpiry, type Hours, isHalf, shownHours, type Token } from './token-body.ts'

const text = tokensText.form
const scopes = Object.keys(text.scopeHints) as Scope[]

const initialScopes: readonly Scope[] = ['user:read', 'user:write']

/** Whether a user with this role may have a token with the scope; without a user every scope may be given. */
const allows = (role: Schema<'User'>['role'] | undefined, scope: Scope): boolean =>
  role === 'viewer' ? scope === 'user:read' : role === 'member' ? scope.startsWith('user:') : true

interface TokenFormProps {
  title: string
  action: string
  /** The token to change; absent for a new one. */
  token?: Token
  /** The role of the user whose token it will be, which bounds its scopes. */
  role?: Schema<'User'>['role'] | undefined
  save: (form: FormData) => Promise<unknown>
  close: () => void
}

/** The fields of a token, new or existing. A token cannot give scopes that it lacks, so those are not offered. */
export function TokenForm({ title, action, token, role, save, close }: TokenFormProps) {
  const { can } = useSession()
  const [unscoped, setUnscoped] = useState(false)
  const [half, setHalf] = useState(false)
  const check = async (form: FormData) => {
    setUnscoped(!form.has('scopes'))
    setHalf(isHalf(form))
    if (form.has('scopes') && !isHalf(form)) await save(form)
  }
  const given = token?.scopes ?? initialScopes.filter(scope => allows(role, scope))
  const [ticked, setTicked] = useState<readonly string[]>(given)
  const [expires, setExpires] = useState<string>()
  const when = token?.expires_at == null ? text.expiry.never : dateText(token.expires_at)
  const limits = [
    ['api', text.api, token?.rate_limit.api],
    ['jobs', text.jobs, token?.rate_limit.jobs],
    ['tokens_per_minute', text.perMinute, token?.tokens_per_minute],
    ['concurrent_requests', text.concurrent, token?.concurrent_requests],
  ] as const
  return (
    <FormDialog title={title} action={action} save={check} close={close}>
      {faultOf => (
        <>
          <TextField
            label={text.name}
            hint={text.nameHint}
            {...nameField}
            defaultValue={token?.name}
            error={faultOf('name')}
          />
          <Fieldset legend={text.scopes}>
            {scopes
              .filter(scope => (can(scope) && allows(role, scope)) || given.includes(scope))
              .map(scope => (
                <Checkbox
                  key={scope}
                  label={scope}
                  hint={text.scopeHints[scope]}
                  name="scopes"
                  value={scope}
                  defaultChecked={given.includes(scope)}
                  change={checked => setTicked(now => (checked ? [...now, scope] : now.filter(one => one !== scope)))}
                />
              ))}
            {(unscoped || faultOf('scopes')) && (
              <p role="alert" className="text-bad text-xs">
                {unscoped ? text.noScope : faultOf('scopes')}
              </p>
            )}
          </Fieldset>
          <SelectField
            label={text.expires}
            name="expires"
            hint={token ? undefined : text.expiresHint}
            value={expires ?? (token ? 'unchanged' : defaultExpiry(ticked))}
            change={setExpires}
            error={faultOf('expires_at')}
            options={[...(token ? [{ id: 'unchanged', name: text.unchanged(when) }] : []), ...optionsOf(text.expiry)]}
          />
          <TextField
            label={text.spend}
            hint={text.spendHint}
            name="monthly_spend_limit"
            type="number"
            min={0}
            step="any"
            defaultValue={token?.monthly_spend_limit ?? ''}
            error={faultOf('monthly_spend_limit')}
          />
          <TextField
            label={text.models}
            hint={text.modelsHint}
            name="models"
            autoComplete="off"
            defaultValue={token?.models?.join(', ') ?? ''}
            error={faultOf('models')}
          />
          <Checkbox
            label={text.localOnly}
            hint={text.localOnlyHint}
            name="local_only"
            defaultChecked={token?.local_only ?? false}
          />
          <details className="border-line rounded-md border px-3 py-2">
            <summary>{text.limits}</summary>
            <div className="mt-3 space-y-4">
              {limits.map(([name, label, limit]) => (
                <TextField
                  key={name}
                  label={label}
                  hint={text.limitHint}
                  name={name}
                  type="number"
                  min={1}
                  defaultValue={limit ?? ''}
                />
              ))}
              <HoursField hours={token?.allowed_hours ?? null} isHalf={half} />
            </div>
          </details>
          {token && (token.status === 'active' || token.status === 'disabled') && (
            <Checkbox label={text.enabled} name="enabled" defaultChecked={token.status === 'active'} />
          )}
        </>
      )}
    </FormDialog>
  )
}

/** Fields that belong together. */
function Fieldset({ legend, children }: { legend: string; children: ReactNode }) {
  const id = useId()
  return (
    <fieldset aria-labelledby={id} className="space-y-2">
      <legend id={id} className="text-sm font-medium">
        {legend}
      </legend>
      {children}
    </fieldset>
  )
}

/** When a token may be used: a time of day on some days. Other hours are left as they are. */
function HoursField({ hours, isHalf }: { hours: Hours | null; isHalf: boolean }) {
  const shown = shownHours(hours)
  if (!shown) return <p className="text-muted text-xs">{text.hoursKept}</p>
  return (
    <Fieldset legend={text.hours}>
      <p className="text-muted text-xs">{text.hoursHint}</p>
      <div className="grid grid-cols-2 gap-3">
        <TextField label={text.hoursFrom} name="hours_from" type="time" defaultValue={shown.from} />
        <TextField label={text.hoursTo} name="hours_to" type="time" defaultValue={shown.to} />
      </div>
      {isHalf && (
        <p role="alert" className="text-bad text-xs">
          {text.hoursHalf}
        </p>
      )}
      <div className="flex flex-wrap gap-x-4 gap-y-2">
        {days.map(day => (
          <Checkbox
            key={day}
            label={text.days[day]}
            name="hours_days"
            value={day}
            defaultChecked={shown.days.includes(day)}
          />
        ))}
      </div>
      <TextField
        label={text.hoursTimezone}
        name="hours_timezone"
        defaultValue={hours?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone}
      />
    </Fieldset>
  )
}
