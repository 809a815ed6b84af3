import { useId } from 'react'
import { Checkbox, TextField } from '../../components/fields.tsx'
import { tokensText } from '../../text/organizations.ts'
import { days, type Hours, shownHours } from './hours.ts'

const text = tokensText.form

/** When a token may be used: a time of day on some days. Other hours are left as they are. */
export function HoursField({ hours, isHalf }: { hours: Hours | null; isHalf: boolean }) {
  const legend = useId()
  const shown = shownHours(hours)
  if (!shown) return <p className="text-muted text-xs">{text.hoursKept}</p>
  return (
    <fieldset aria-labelledby={legend} className="space-y-2">
      <legend id={legend} className="text-sm font-medium">
        {text.hours}
      </legend>
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
    </fieldset>
  )
}
