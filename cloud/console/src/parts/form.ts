//! The form around a control, whose errors the control shows. A control may also be outside a form.

import { getContext, setContext } from 'svelte';
import type { Problem } from '../api/problem';

export interface FormState {
  problem: Problem | undefined;
}

const KEY = 'form';
export const provideForm = (form: FormState) => setContext(KEY, form);
export const formAround = () => getContext<FormState | undefined>(KEY);

/** The error of the field with this name. */
export const errorOf = (form: FormState | undefined, name: string) => form?.problem?.fields.find(({ field }) => field === name)?.message;
