/**
 * Formats an amount in currency units exactly: at least two decimals, and as many as it has, because the use of a model
 * may cost less than a cent.
 */
export const moneyText = (amount: number): string => amount.toFixed(amount < 1 ? 9 : 6).replace(/(\.\d\d\d*?)0+$/, '$1')
